// A master of a cluster that dies: its slots fail at once until its replica takes over, and the others go on.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/core/ports.ts";
import { ask } from "../contract/store-contract.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { slotOf } from "../support/hash-slot.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { connectTopologyStore, type TopologyStore } from "../support/topology-store.ts";

const BURST = 100;
const LIMIT = makeLimit({ algorithm: "gcra", requestsPerUnit: BURST, periodUs: HOUR });

const clock = new FakeClock();
let cluster: RedisCluster;
let redis: TopologyStore;
/** On the master that goes, and on another. */
let lost: Check;
let kept: Check;

beforeEach(async () => {
  // The others must go on while a part of the slots is not served.
  cluster = await startCluster(["--cluster-require-full-coverage", "no"]);
  redis = await connectTopologyStore("cluster", cluster.url, { clock, deadlineMs: 500 });
  const names = Array.from({ length: 20 }, (_, index) => `{tenant ${index}}`);
  const checkOf = (key = ""): Check => ({ key, limit: LIMIT, hits: 1 });
  lost = checkOf(names.find((name) => slotOf(name) <= 5_460));
  kept = checkOf(names.find((name) => slotOf(name) > 5_460));
});
afterEach(async () => {
  redis.store.close();
  await cluster.stop();
});

/** What came of asking for the slot of the lost master until it was answered again. */
async function askUntilAnswered(): Promise<{ failed: number; answered: number }> {
  let failed = 0;
  const answered = await eventually(
    "the slot is answered again",
    async () => {
      const startMs = performance.now();
      try {
        return await ask(redis.store, lost);
      } catch (error) {
        expect(error).toMatchObject({ name: "StoreError", transient: true });
        expect(performance.now() - startMs).toBeLessThan(1_000);
        failed += 1;
        await ask(redis.store, kept);
        return undefined;
      }
    },
    { withinMs: 20_000, everyMs: 20 },
  );
  return { failed, answered: answered.remaining };
}

describe("a master that is lost", () => {
  it.each(["killed", "frozen"])("by being %s fails its slots until its replica takes over", async (how) => {
    const [master] = cluster.masters;
    const [replica] = cluster.replicas;
    for (let hit = 0; hit < 60; hit++) await ask(redis.store, lost);
    // What the replica was not told yet is lost with its master; here it was told all.
    expect(await master.admin.wait(1, 5_000)).toBe(1);
    if (how === "killed") await master.server.stop();
    else master.server.process.kill("SIGSTOP");

    const { failed, answered } = await askUntilAnswered();
    expect(failed).toBeGreaterThan(0);
    // Nothing that failed was sent to the replica: it counted the 60 hits and this one.
    expect(answered).toBe(BURST - 61);
    expect(await replica?.admin.role()).toContain("master");
    expect(redis.topology.state).toMatchObject({ kind: "ready" });
    let passed = 61;
    for (let hit = 0; hit < 60; hit++) passed += (await ask(redis.store, lost)).allowed ? 1 : 0;
    expect(passed).toBe(BURST);
  });

  it("with hits that its replica was not told of lets no more pass again than those", async () => {
    const [master] = cluster.masters;
    const [replica] = cluster.replicas;
    for (let hit = 0; hit < 30; hit++) await ask(redis.store, lost);
    expect(await master.admin.wait(1, 5_000)).toBe(1);
    // The replica hears nothing from now on, as if the network between them were slow.
    replica?.server.process.kill("SIGSTOP");
    let passed = 30;
    for (let hit = 0; hit < 40; hit++) passed += (await ask(redis.store, lost)).allowed ? 1 : 0;
    await master.server.stop();
    replica?.server.process.kill("SIGCONT");
    const { answered } = await askUntilAnswered();
    passed += 1;
    for (let hit = 0; hit < 2 * BURST; hit++) passed += (await ask(redis.store, lost)).allowed ? 1 : 0;
    // The socket may have kept some of the 40 for the replica.
    expect(answered).toBeGreaterThanOrEqual(BURST - 71);
    expect(answered).toBeLessThanOrEqual(BURST - 31);
    expect(passed).toBe(70 + 1 + answered);
    expect(passed).toBeLessThanOrEqual(BURST + 40);
  });

  it("is told once, and so is its return", async () => {
    const [master] = cluster.masters;
    await master.server.stop();
    await redis.until((state) => state.kind === "ready" && state.server.includes("2 of 3 masters"));
    await redis.until((state) => state.kind === "ready" && state.server.endsWith("with 3 masters"));
    const told = redis.warnings.filter((message) => message.includes(`127.0.0.1:${master.port}`));
    expect(told).toHaveLength(1);
    expect(redis.states.every(({ kind }) => kind === "ready")).toBe(true);
  });
});

describe("all masters and replicas", () => {
  it("that are lost make the store fail at once", async () => {
    for (const { server } of cluster.nodes) await server.stop();
    await redis.until(({ kind }) => kind === "connecting");
    const startMs = performance.now();
    await expect(ask(redis.store, lost)).rejects.toMatchObject({ name: "StoreError", transient: true });
    expect(performance.now() - startMs).toBeLessThan(100);
  });
});
