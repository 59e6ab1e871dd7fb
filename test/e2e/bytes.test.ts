// Envoy passes header bytes on unchecked and drops an answer that it cannot parse, which lets the request pass. So bytes
// that are not UTF-8 must be counted like any others and must not come back in an answer as they are.
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type EdgeStack, startEdge } from "../support/edge-stack.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { redisSettings, startWeir, type Weir } from "../support/weir-process.ts";
import { clearOfWindowEnd } from "../support/window.ts";

const RULES = `
domain: edge
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 2 }
`;

let redis: RedisServer;
let weir: Weir;
let edge: EdgeStack;

beforeAll(async () => {
  await clearOfWindowEnd(86_400);
  redis = await startRedis();
  // Everything that can bring the request's text into the answer is on.
  const answers = { RESPONSE_DYNAMIC_METADATA: "true", LIMIT_RESPONSE_HEADERS_ENABLED: "true" };
  weir = await startWeir({ rules: { "edge.yaml": RULES }, env: { ...redisSettings(redis.port), ...answers } });
  edge = await startEdge(weir.grpcPort);
});

afterAll(async () => {
  await edge?.stop();
  await weir?.stop();
  await redis?.stop();
});

it("limits tenants whose bytes are not UTF-8, each on its own", async () => {
  const seen: [number, string | undefined][] = [];
  for (const tenant of ["\xff", "\xff", "\xff", "\xfe", "\xc3(", "\\xff"]) {
    const { status, headers } = await edge.get("/", { "x-tenant": tenant });
    seen.push([status, headers["ratelimit-remaining"]?.toString()]);
  }
  expect(seen).toEqual([
    [200, "1"],
    [200, "0"],
    [429, "0"],
    [200, "1"],
    [200, "1"],
    [200, "1"],
  ]);
  expect([await edge.answers("ok"), await edge.answers("over_limit"), await edge.answers("error")]).toEqual([
    5,
    1,
    undefined,
  ]);
});

it("escapes the bytes in its keys", async () => {
  const client = new Redis({ port: redis.port, host: "127.0.0.1" });
  const keys = (await client.keys("*")).sort();
  await client.quit();
  expect(keys).toEqual([
    "weir1:fixed_window:86400000000:{edge|tenant=%c3(}",
    "weir1:fixed_window:86400000000:{edge|tenant=%fe}",
    "weir1:fixed_window:86400000000:{edge|tenant=%ff}",
    "weir1:fixed_window:86400000000:{edge|tenant=\\xff}",
  ]);
});
