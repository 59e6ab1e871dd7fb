// A master that dies or is demoted while sentinels watch: calls fail until another master is there, and then go on.
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/core/ports.ts";
import { ask } from "../contract/store-contract.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { MASTER_NAME, type SentinelSet, startSentinels } from "../support/redis-sentinel.ts";
import { ranOf } from "../support/redis-stats.ts";
import { connectTopologyStore, type TopologyStore } from "../support/topology-store.ts";

const BURST = 100;
const CHECK: Check = {
  key: "key",
  limit: makeLimit({ algorithm: "gcra", requestsPerUnit: BURST, periodUs: HOUR }),
  hits: 1,
};

const clock = new FakeClock();
let set: SentinelSet;
let redis: TopologyStore;
let admin: Redis;

beforeEach(async () => {
  set = await startSentinels();
  redis = await connectTopologyStore("sentinel", set.url, { clock, deadlineMs: 500 });
  admin = new Redis(set.master.port, "127.0.0.1", { retryStrategy: () => 50 });
  admin.on("error", () => undefined);
});
afterEach(async () => {
  redis.store.close();
  admin.disconnect();
  await set.stop();
});

/** Asks until an answer comes; every failure before it must be a StoreError in time. */
async function askUntilAnswered(): Promise<{ failed: number; remaining: number }> {
  let failed = 0;
  const { remaining } = await eventually(
    "calls are answered again",
    async () => {
      const startMs = performance.now();
      try {
        return await ask(redis.store, CHECK);
      } catch (error) {
        expect(error).toMatchObject({ name: "StoreError", transient: true });
        expect(performance.now() - startMs).toBeLessThan(1_000);
        failed += 1;
        return undefined;
      }
    },
    { withinMs: 30_000, everyMs: 20 },
  );
  return { failed, remaining };
}

describe("a master that is lost", () => {
  it.each(["killed", "frozen"])("by being %s is replaced, and no hit is lost or counted twice", async (how) => {
    for (let hit = 0; hit < 60; hit++) await ask(redis.store, CHECK);
    expect(await admin.wait(2, 5_000)).toBe(2);
    if (how === "killed") await set.master.stop();
    else set.master.process.kill("SIGSTOP");
    const { failed, remaining } = await askUntilAnswered();
    expect(failed).toBeGreaterThan(0);
    expect(remaining).toBe(BURST - 61);
    let passed = 61;
    for (let hit = 0; hit < 60; hit++) passed += (await ask(redis.store, CHECK)).allowed ? 1 : 0;
    expect(passed).toBe(BURST);
  });

  it("on demand of an operator is left for the new one, though it still answers", async () => {
    for (let hit = 0; hit < 10; hit++) await ask(redis.store, CHECK);
    expect(await admin.wait(2, 5_000)).toBe(2);
    const left = redis.until(({ kind }) => kind === "connecting");
    const sentinel = new Redis(set.sentinels[0]?.port ?? 0, "127.0.0.1");
    await sentinel.call("SENTINEL", "FAILOVER", MASTER_NAME);
    sentinel.disconnect();
    expect(await left).toMatchObject({ reason: expect.stringContaining("named another master") });
    const { remaining } = await askUntilAnswered();
    expect(remaining).toBe(BURST - 11);
    const ran = await Promise.all(
      set.replicas.map(async ({ port }) => {
        const replica = new Redis(port, "127.0.0.1");
        const [role] = await replica.role();
        const calls = await ranOf(replica, "evalsha");
        replica.disconnect();
        return [role, calls];
      }),
    );
    // The dry call and this one.
    expect(ran.filter(([role]) => role === "master")).toEqual([["master", 2]]);
  });
});
