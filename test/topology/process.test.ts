// The real weir on a real cluster and behind real sentinels, by settings alone.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { freePort } from "../support/free-port.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { type SentinelSet, startSentinels } from "../support/redis-sentinel.ts";
import { connectRls } from "../support/rls-client.ts";
import { launchWeir, metric, type StartingWeir } from "../support/weir-process.ts";

const RULES = {
  "shop.yaml": `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: ip, rate_limit: { unit: day, requests_per_unit: 1000, algorithm: gcra } }
`,
};

let cluster: RedisCluster;
let sentinels: SentinelSet;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
beforeAll(async () => {
  sentinels = await startSentinels({ sentinelPassword: "watch" });
});
afterAll(() => sentinels.stop());

function launch(env: Readonly<Record<string, string>>): StartingWeir {
  const weir = launchWeir({ rules: RULES, env: { BACKEND_TYPE: "", ...env } });
  onTestFinished(async () => {
    weir.child.kill("SIGKILL");
    await weir.child.exit;
  });
  return weir;
}

function requestOf(tenant: string): { domain: string; descriptors: { entries: { key: string; value: string }[] }[] } {
  return {
    domain: "shop",
    descriptors: [{ entries: [{ key: "tenant", value: tenant }] }, { entries: [{ key: "ip", value: `of ${tenant}` }] }],
  };
}

describe("weir", () => {
  it.each([
    ["CLUSTER", () => ({ REDIS_URL: cluster.url }), /a cluster with 3 masters/],
    ["cluster", () => ({ REDIS_URL: cluster.url, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true" }), /3 masters/],
    ["SENTINEL", () => ({ REDIS_URL: sentinels.url, REDIS_SENTINEL_AUTH: "watch" }), /Redis is connected/],
  ])("limits with REDIS_TYPE=%s", async (type, env, says) => {
    const weir = await launch({
      REDIS_TYPE: type,
      LOG_LEVEL: "info",
      CACHE_KEY_PREFIX: `${type}:`,
      ...env(),
    }).serving();
    const client = connectRls(weir.grpcPort);
    onTestFinished(() => client.close());
    for (let tenant = 0; tenant < 20; tenant++) {
      const codes: string[] = [];
      for (let call = 0; call < 3; call++) {
        codes.push((await client.shouldRateLimit(requestOf(`${tenant}`))).overallCode);
      }
      expect(codes).toEqual(["OK", "OK", "OVER_LIMIT"]);
    }
    expect(weir.child.output()).toMatch(says);
    expect(await metric(weir, "weir_redis_connected")).toBe(1);
    expect((await weir.stop()).code).toBe(0);
  });

  it.each([
    [{ REDIS_TYPE: "CLUSTER", REDIS_URL: "/var/run/redis.sock" }, "REDIS_URL=host:port,host:port"],
    [{ REDIS_TYPE: "SENTINEL", REDIS_URL: "127.0.0.1:26379" }, "REDIS_URL=master-name,host:port"],
    [{ REDIS_TYPE: "SENTINEL", REDIS_URL: "shop" }, '"shop" has no sentinel behind it'],
    [{ REDIS_TYPE: "CLUSTER" }, "needs REDIS_URL"],
  ])("does not start with %j, and says what is wanted", async (env, says) => {
    const { child } = launch(env);
    expect((await child.exitsWithin()).code).toBe(1);
    expect(child.output()).toContain(says);
  });

  it.each([
    ["CLUSTER", (port: number) => `127.0.0.1:${port}`],
    ["SENTINEL", (port: number) => `shop,127.0.0.1:${port}`],
  ])("ends within a second while nothing answers for REDIS_TYPE=%s", async (type, url) => {
    const starting = launch({ REDIS_TYPE: type, REDIS_URL: url(await freePort()), WEIR_DRAIN: "5s" });
    await starting.child.prints(/Redis is not connected/);
    await starting.listening();
    starting.child.kill("SIGTERM");
    expect(await starting.child.exitsWithin(1_000)).toEqual({ code: 0, signal: null });
  });
});
