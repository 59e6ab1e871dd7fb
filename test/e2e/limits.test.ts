// The demonstration itself: the Envoy of docker-compose.yml, weir, and Redis or the memory store behind it.
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EdgeReply, type EdgeStack, startEdge } from "../support/edge-stack.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { redisSettings, startWeir, type Weir } from "../support/weir-process.ts";
import { clearOfWindowEnd, secondsLeft } from "../support/window.ts";

const RULES = `
domain: edge
descriptors:
  - key: tenant
    rate_limit: { name: per-tenant, unit: day, requests_per_unit: 4 }
    descriptors:
      - key: path
        value: /export
        rate_limit: { unit: day, requests_per_unit: 2 }
  - key: remote_address
    rate_limit: { unit: hour, requests_per_unit: 1000 }
  - key: path
    rate_limit: { unit: week, requests_per_unit: 500 }
`;
const DAY = 86_400;

/** The headers that Envoy makes of weir's answer; the reset is checked against the time around the call. */
function limitHeaders({ status, headers }: EdgeReply): object {
  return {
    status,
    limit: headers["x-ratelimit-limit"],
    remaining: headers["x-ratelimit-remaining"],
    limited: headers["x-envoy-ratelimited"],
    retryAfter: headers["retry-after"],
  };
}

function expectReset(reply: EdgeReply, periodSeconds: number): void {
  expect(secondsLeft(periodSeconds, reply.fromSecond, reply.toSecond).map(String)).toContain(
    reply.headers["x-ratelimit-reset"],
  );
}

describe.each(["redis", "memory"])("Envoy in front of weir on the %s store", (backend) => {
  let redis: RedisServer | undefined;
  let weir: Weir;
  let edge: EdgeStack;

  beforeAll(async () => {
    await clearOfWindowEnd(3600); // days and weeks end with an hour
    if (backend === "redis") redis = await startRedis();
    weir = await startWeir({
      rules: { "edge.yaml": RULES },
      env: redis === undefined ? {} : redisSettings(redis.port),
    });
    edge = await startEdge(weir.grpcPort);
  });

  afterAll(async () => {
    await edge?.stop();
    await weir?.stop();
    await redis?.stop();
  });

  it("passes as many requests as the tenant's limit, then answers 429 with the time to wait", async () => {
    const limit = '4, 4;w=86400;name="per-tenant", 1000;w=3600, 500;w=604800';
    for (const remaining of ["3", "2", "1", "0"]) {
      const reply = await edge.get("/", { "x-tenant": "ann" });
      expect(limitHeaders(reply)).toEqual({ status: 200, limit, remaining, limited: undefined, retryAfter: undefined });
      expectReset(reply, DAY);
    }
    for (let refused = 0; refused < 2; refused++) {
      const reply = await edge.get("/", { "x-tenant": "ann" });
      const retryAfter = reply.headers["x-ratelimit-reset"];
      expect(limitHeaders(reply)).toEqual({ status: 429, limit, remaining: "0", limited: "true", retryAfter });
      expectReset(reply, DAY);
    }
    expect(edge.reached).toEqual(["/", "/", "/", "/"]);
  });

  it("leaves another tenant alone", async () => {
    const reply = await edge.get("/", { "x-tenant": "bob" });
    expect([reply.status, reply.headers["x-ratelimit-remaining"]]).toEqual([200, "3"]);
  });

  it("limits a path within a tenant, however the path is spelled", async () => {
    const limit = '2, 4;w=86400;name="per-tenant", 2;w=86400, 1000;w=3600, 500;w=604800';
    const spellings = ["/export?page=1", "//export", "/%65xport"];
    const replies: EdgeReply[] = [];
    for (const path of spellings) replies.push(await edge.get(path, { "x-tenant": "cleo" }));
    const retryAfter = replies[2]?.headers["x-ratelimit-reset"];
    expect(replies.map(limitHeaders)).toEqual([
      { status: 200, limit, remaining: "1", limited: undefined, retryAfter: undefined },
      { status: 200, limit, remaining: "0", limited: undefined, retryAfter: undefined },
      { status: 429, limit, remaining: "0", limited: "true", retryAfter },
    ]);
    for (const reply of replies) expectReset(reply, DAY);
  });

  it("limits requests without a tenant by path and by the connection's address, whatever they claim", async () => {
    const first = await edge.get("/open", { "x-forwarded-for": "192.0.2.7" });
    const second = await edge.get("/open", { "x-forwarded-for": "192.0.2.8" });
    const limit = "500, 1000;w=3600, 500;w=604800";
    expect([first, second].map(limitHeaders)).toEqual([
      { status: 200, limit, remaining: "499", limited: undefined, retryAfter: undefined },
      { status: 200, limit, remaining: "498", limited: undefined, retryAfter: undefined },
    ]);
    expectReset(second, 604_800);
  });

  it("was asked once for each request, and answered each time", async () => {
    expect([await edge.answers("ok"), await edge.answers("over_limit"), await edge.answers("error")]).toEqual([
      9,
      3,
      undefined,
    ]);
  });

  if (backend === "redis") {
    it("keeps one key for each counter, tagged by domain and tenant, each with an end", async () => {
      const client = new Redis({ port: redis?.port ?? 0, host: "127.0.0.1" });
      const keys = (await client.keys("*")).sort();
      const ends = await Promise.all(keys.map((key) => client.pttl(key)));
      await client.quit();
      expect(keys).toEqual([
        "weir1:fixed_window:3600000000:{edge|remote_address=127.0.0.1}",
        "weir1:fixed_window:604800000000:{edge|path=/export}",
        "weir1:fixed_window:604800000000:{edge|path=/open}",
        "weir1:fixed_window:604800000000:{edge|path=/}",
        "weir1:fixed_window:86400000000:{edge|tenant=ann}",
        "weir1:fixed_window:86400000000:{edge|tenant=bob}",
        "weir1:fixed_window:86400000000:{edge|tenant=cleo}",
        "weir1:fixed_window:86400000000:{edge|tenant=cleo}|path=/export",
      ]);
      expect(ends.every((ms) => ms > 0)).toBe(true);
    });
  }
});
