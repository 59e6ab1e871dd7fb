// How the real process starts: in what order, with what it needs missing, and when it refuses to.
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { startRedis } from "../support/redis-server.ts";
import { connectRls, type RlsClient } from "../support/rls-client.ts";
import {
  healthStatus,
  launchWeir,
  metric,
  redisSettings,
  type StartingWeir,
  type Weir,
} from "../support/weir-process.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors: [{ key: ip, rate_limit: { unit: day, requests_per_unit: 2 } }]\n",
};
const REQUEST = { domain: "shop", descriptors: [{ entries: [{ key: "ip", value: "192.0.2.1" }] }] };
const UNAVAILABLE = 14;

function launch(...options: Parameters<typeof launchWeir>): StartingWeir {
  const weir = launchWeir(...options);
  onTestFinished(async () => {
    weir.child.kill("SIGKILL");
    await weir.child.exit;
  });
  return weir;
}

function connect(weir: Weir): RlsClient {
  const client = connectRls(weir.grpcPort);
  onTestFinished(() => client.close());
  return client;
}

/** The code and message of a call's failure. */
async function failure(call: Promise<unknown>): Promise<{ code: number; details: string }> {
  const error = await call.then(
    (answer) => {
      throw new Error(`answered ${JSON.stringify(answer)}`);
    },
    (reason: { code: number; details: string }) => reason,
  );
  return { code: error.code, details: error.details };
}

describe("starting on the memory store", () => {
  it.each(["src/cli/main.ts", "dist/cli/main.js"] as const)("serves from %s", async (entry) => {
    // `npm test` builds dist/ first; run by itself, this test needs `npm run build`.
    expect(existsSync(new URL(`../../${entry}`, import.meta.url))).toBe(true);
    const begin = performance.now();
    const weir = await launch({ rules: RULES, entry, env: { NODE_DISABLE_COMPILE_CACHE: "1" } }).serving();
    process.stdout.write(`${entry}: ${Math.round(performance.now() - begin)} ms from exec to healthy\n`);
    const client = connect(weir);
    expect(await client.health("ratelimit")).toBe("SERVING");
    expect(await client.health("")).toBe("SERVING");
    expect((await client.shouldRateLimit(REQUEST)).overallCode).toBe("OK");
  });

  it("says so when the store was not chosen", async () => {
    const { child } = await launch({ env: { BACKEND_TYPE: "" } }).serving();
    expect(child.output()).toMatch(/memory/);
  });
});

describe("starting without Redis", () => {
  it("opens its ports, is not healthy and answers UNAVAILABLE until Redis comes", async () => {
    const port = await freePort();
    const weir = await launch({ rules: RULES, env: redisSettings(port) }).listening();
    const client = connect(weir);
    expect(await healthStatus(weir)).toBe(500);
    expect(await client.health("ratelimit")).toBe("NOT_SERVING");
    expect((await failure(client.shouldRateLimit(REQUEST))).code).toBe(UNAVAILABLE);

    const redis = await startRedis([], port);
    onTestFinished(() => redis.stop());
    await eventually("weir is healthy", async () => ((await healthStatus(weir)) === 200 ? true : undefined));
    expect(await client.health("ratelimit")).toBe("SERVING");
    expect((await client.shouldRateLimit(REQUEST)).overallCode).toBe("OK");
  });

  it("ends within a second on SIGTERM, whatever the drain time", async () => {
    const starting = launch({ env: { ...redisSettings(await freePort()), WEIR_DRAIN: "5s" } });
    await starting.listening();
    starting.child.kill("SIGTERM");
    expect(await starting.child.exitsWithin(1000)).toEqual({ code: 0, signal: null });
  });
});

describe("starting with bad rules", () => {
  it("lives and is healthy, but decides nothing until good rules come", async () => {
    const weir = await launch({ rules: { "shop.yaml": "domain: shop\nnonsense: 1\n" } }).serving();
    const client = connect(weir);
    const { code, details } = await failure(client.shouldRateLimit(REQUEST));
    expect(code).toBe(UNAVAILABLE);
    expect(details).toContain("configuration loaded");
    expect(weir.child.output()).toMatch(/shop\.yaml.*nonsense/);
    expect(await metric(weir, "ratelimit_service_config_load_error")).toBe(1);

    weir.rules.put("shop.yaml", RULES["shop.yaml"]);
    await eventually("the good rules are loaded", async () =>
      (await metric(weir, "ratelimit_service_config_load_success")) > 0 ? true : undefined,
    );
    expect((await client.shouldRateLimit(REQUEST)).overallCode).toBe("OK");
  });
});

/** The name as a whole word. */
function mentions(name: string): RegExp {
  return new RegExp(`\\b${name}\\b`);
}

describe("refusing to start", () => {
  it.each([
    ["PORT", { PORT: "http" }],
    ["GRPC_PORT", { GRPC_PORT: "70000" }],
    ["BACKEND_TYPE", { BACKEND_TYPE: "postgres" }],
    ["WEIR_DRAIN", { WEIR_DRAIN: "soon" }],
    ["WEIR_DRAIM", { WEIR_DRAIM: "5s" }],
    ["LOG_LEVEL", { LOG_LEVEL: "loud" }],
    ["SHADOW_MODE", { SHADOW_MODE: "maybe" }],
    ["REDIS_SOCKET_TYPE", { BACKEND_TYPE: "redis", REDIS_SOCKET_TYPE: "tcp", REDIS_URL: "/run/redis.sock" }],
  ])("names %s when it is wrong", async (name, env) => {
    const { child } = launch({ env });
    expect((await child.exitsWithin()).code).toBe(1);
    expect(child.output()).toMatch(mentions(name));
  });

  it("names every wrong setting at once", async () => {
    const { child } = launch({ env: { PORT: "http", WEIR_DRAIN: "soon" } });
    expect((await child.exitsWithin()).code).toBe(1);
    expect(child.output()).toMatch(mentions("PORT"));
    expect(child.output()).toMatch(mentions("WEIR_DRAIN"));
  });

  it.each(["PORT", "GRPC_PORT", "DEBUG_PORT"])("says when %s is in use", async (name) => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => new Promise<void>((resolve) => holder.close(() => resolve())));
    const address = holder.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { child } = launch({ env: { [name]: `${port}` } });
    expect((await child.exitsWithin()).code).toBe(1);
    expect(child.output()).toMatch(new RegExp(`\\b${port}\\b.*in use|in use.*\\b${port}\\b`));
  });
});
