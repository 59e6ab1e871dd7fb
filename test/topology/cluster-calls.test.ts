// What the store does with the nodes of a cluster: one call for each slot of a turn, to the master that holds it, and
// what surely did not run is sent again.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/core/ports.ts";
import { ask, askAll } from "../contract/store-contract.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { freePort } from "../support/free-port.ts";
import { slotOf } from "../support/hash-slot.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { type ClusterNode, type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { startRedis } from "../support/redis-server.ts";
import { errorsOf, ranOf } from "../support/redis-stats.ts";
import { randomPrefix } from "../support/redis-store.ts";
import { connectTopologyStore, openTopologyStore, type TopologyStore } from "../support/topology-store.ts";

const WINDOW = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 1_000_000, periodUs: HOUR });
const GCRA = makeLimit({ algorithm: "gcra", requestsPerUnit: 5, periodUs: HOUR });

const clock = new FakeClock();
let cluster: RedisCluster;
let redis: TopologyStore;
let prefix = "";

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
beforeEach(async () => {
  redis = await connectTopologyStore("cluster", cluster.url, { clock });
  prefix = randomPrefix();
});
afterEach(() => redis.store.close());

function checkOf(tag: string, name = "", hits = 1): Check {
  return { key: `${prefix}{${tag}}${name}`, limit: GCRA, hits };
}

function masterOf(key: string): ClusterNode {
  const [first, second, third] = cluster.masters;
  const slot = slotOf(key);
  if (slot <= 5_460) return first;
  return slot <= 10_922 ? second : third;
}

async function ranOnAll(command: string): Promise<number> {
  const counts = await Promise.all(cluster.nodes.map(({ admin }) => ranOf(admin, command)));
  return counts.reduce((sum, count) => sum + count, 0);
}

describe("calls", () => {
  it("go out once for each slot of a turn, to its master, with keys of that slot alone", async () => {
    const tags = ["ann", "bob", "cid", "dan", "eve"];
    const slots = new Set(tags.map(slotOf));
    expect(new Set(tags.map((tag) => masterOf(`{${tag}}`))).size).toBe(3);
    const before = await ranOnAll("evalsha");
    const monitors = await Promise.all(
      cluster.masters.map(async ({ admin, port }) => {
        const monitor = await admin.duplicate().monitor();
        const seen: { port: number; source: string; args: string[] }[] = [];
        monitor.on("monitor", (_time: string, args: string[], source: string) => seen.push({ port, source, args }));
        return { monitor, seen };
      }),
    );
    try {
      const requests = Array.from({ length: 20 }, (_, index) =>
        askAll(
          redis.store,
          tags.map((tag) => checkOf(tag, `${index % 4}`)),
        ),
      );
      const answers = await Promise.all(requests);
      // Four counters for each tag, asked five times each.
      expect(answers.flat().filter(({ allowed }) => allowed)).toHaveLength(100);
      const end = `${prefix}end`;
      await Promise.all(cluster.masters.map(({ admin }) => admin.echo(end)));
      await Promise.all(
        monitors.map(({ seen }) =>
          eventually("the monitor is done", () => (seen.some(({ args }) => args.includes(end)) ? true : undefined)),
        ),
      );
    } finally {
      for (const { monitor } of monitors) monitor.disconnect();
    }
    const seen = monitors.flatMap((monitor) => monitor.seen);
    const calls = seen.filter(({ args }) => args[0]?.toLowerCase() === "evalsha");
    const declared = calls.map(({ args }) => args.slice(3, 3 + Number(args[2])));
    expect(calls).toHaveLength(slots.size);
    expect((await ranOnAll("evalsha")) - before).toBe(slots.size);
    for (const [index, keys] of declared.entries()) {
      expect(keys).toHaveLength(20);
      expect(new Set(keys.map(slotOf)).size).toBe(1);
      expect(keys.map((key) => masterOf(key).port)).toEqual(keys.map(() => calls[index]?.port));
    }
    const touched = seen.filter(({ source }) => source.startsWith("lua")).map(({ args }) => args[1] ?? "");
    expect(new Set(touched)).toEqual(new Set(declared.flat()));
  });

  it("are split where a slot has very many checks, never within a request", async () => {
    const before = await ranOnAll("evalsha");
    const requests = Array.from({ length: 100 }, () => askAll(redis.store, [checkOf("a"), checkOf("b"), checkOf("a")]));
    const answers = await Promise.all(requests);
    expect(answers.flat().filter(({ allowed }) => allowed)).toHaveLength(10);
    // 200 checks in one slot, 100 in the other.
    expect((await ranOnAll("evalsha")) - before).toBe(3);
  });

  it("survive SCRIPT FLUSH on one node: the script is sent there again and nothing is counted twice", async () => {
    const checks = ["ann", "bob", "cid"].map((tag): Check => ({ ...checkOf(tag), limit: WINDOW }));
    await askAll(redis.store, checks);
    const flushed = masterOf(checks[0]?.key ?? "");
    await flushed.admin.script("FLUSH");
    const before = await ranOnAll("eval");
    expect((await askAll(redis.store, checks)).map(({ remaining }) => remaining)).toEqual([999_998, 999_998, 999_998]);
    expect((await ranOnAll("eval")) - before).toBe(
      new Set(checks.filter(({ key }) => masterOf(key) === flushed).map(({ key }) => slotOf(key))).size,
    );
    expect((await askAll(redis.store, checks)).map(({ remaining }) => remaining)).toEqual([999_997, 999_997, 999_997]);
  });

  it("fail for the slots of one node alone when it is frozen", async () => {
    const [, frozen] = cluster.masters;
    const hasty = await connectTopologyStore("cluster", cluster.url, { deadlineMs: 1_000 });
    const tags = ["ann", "bob", "cid", "dan", "eve"];
    frozen.server.process.kill("SIGSTOP");
    try {
      const answers = await Promise.allSettled(tags.map((tag) => ask(hasty.store, checkOf(tag))));
      expect(answers.map(({ status }) => status)).toEqual(
        tags.map((tag) => (masterOf(`{${tag}}`) === frozen ? "rejected" : "fulfilled")),
      );
    } finally {
      frozen.server.process.kill("SIGCONT");
      hasty.store.close();
    }
  });
});

describe("a slot that moved", () => {
  /** Hands a slot over between two nodes, keys and all, before anybody looks at the map again. */
  async function move(slot: number, from: ClusterNode, to: ClusterNode): Promise<void> {
    await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id);
    await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id);
    for (;;) {
      const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
      if (keys.length === 0) break;
      await from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5_000, "KEYS", ...keys);
    }
    for (const { admin } of [to, from, ...cluster.masters]) await admin.call("CLUSTER", "SETSLOT", slot, "NODE", to.id);
    // A node without a higher epoch of its own would not be believed after the next hand-over.
    await to.admin.call("CLUSTER", "BUMPEPOCH");
  }

  it("is followed at once: the call is sent to the new node and runs once", async () => {
    const check = { ...checkOf("mover"), limit: WINDOW };
    const slot = slotOf(check.key);
    const home = masterOf(check.key);
    const other = cluster.masters.find((node) => node !== home) ?? home;
    let [from, to] = [home, other];
    let left = (await ask(redis.store, check)).remaining;
    // The store may look at the map by itself just then, but not every time.
    let moved = 0;
    for (let round = 0; round < 10 && (moved === 0 || from !== home); round++) {
      await move(slot, from, to);
      const [told, ran] = [await errorsOf(from.admin, "MOVED"), await ranOnAll("evalsha")];
      const answers = await Promise.all([ask(redis.store, check), askAll(redis.store, [check, check])]);
      expect(answers).toMatchObject([{ remaining: left - 1 }, [{ remaining: left - 2 }, { remaining: left - 3 }]]);
      expect((await ranOnAll("evalsha")) - ran).toBe(1);
      left = (await ask(redis.store, check)).remaining;
      moved += (await errorsOf(from.admin, "MOVED")) - told;
      [from, to] = [to, from];
    }
    expect(moved).toBeGreaterThan(0);
    expect(left).toBeLessThan(1_000_000 - 4);
    await redis.store.reset(check.key);
    expect(await ask(redis.store, check)).toMatchObject({ remaining: 999_999 });
  });

  it("is followed by a reset as well", async () => {
    const check = { ...checkOf("reset mover"), limit: WINDOW };
    const home = masterOf(check.key);
    const other = cluster.masters.find((node) => node !== home) ?? home;
    await ask(redis.store, check);
    await move(slotOf(check.key), home, other);
    await redis.store.reset(check.key);
    expect(await ask(redis.store, check)).toMatchObject({ remaining: 999_999 });
    await move(slotOf(check.key), other, home);
  });
});

describe("the start", () => {
  it("is over when the map is there and all masters can be asked", async () => {
    expect(redis.states).toEqual([
      { kind: "ready", server: expect.stringMatching(/^Redis [\d.]+, a cluster with 3 masters$/) },
    ]);
    expect(redis.warnings).toEqual([]);
  });

  it.each([
    ["one master", () => `127.0.0.1:${cluster.masters[1].port}`],
    ["a replica", () => `127.0.0.1:${cluster.replicas[2]?.port}`],
    ["a name", () => `localhost:${cluster.masters[0].port}`],
  ])("needs %s to begin with", async (_, url) => {
    const opened = await connectTopologyStore("cluster", url());
    expect(await ask(opened.store, checkOf("ann"))).toMatchObject({ remaining: 4 });
    expect(await ask(opened.store, checkOf("bob"))).toMatchObject({ remaining: 4 });
    expect(await ask(opened.store, checkOf("cid"))).toMatchObject({ remaining: 4 });
    opened.store.close();
  });

  it("finds a way around seeds that are gone", async () => {
    const gone = await freePort();
    const opened = await connectTopologyStore("cluster", `127.0.0.1:${gone},127.0.0.1:${cluster.masters[2].port}`);
    expect(await ask(opened.store, checkOf("ann"))).toMatchObject({ remaining: 4 });
    opened.store.close();
  });

  it("wants the password of every node", async () => {
    for (const { admin } of cluster.nodes) await admin.config("SET", "requirepass", "secret");
    try {
      const wrong = openTopologyStore("cluster", cluster.url);
      await wrong.until((state) => state.kind === "connecting" && state.reason.includes("NOAUTH"));
      wrong.store.close();
      const right = await connectTopologyStore("cluster", cluster.url, { auth: "secret" });
      const answers = await askAll(
        right.store,
        ["ann", "bob", "cid"].map((tag) => checkOf(tag)),
      );
      expect(answers.map(({ remaining }) => remaining)).toEqual([4, 4, 4]);
      right.store.close();
    } finally {
      for (const { admin } of cluster.nodes) await admin.config("SET", "requirepass", "");
    }
  });

  it("waits, and says why, while no seed answers", async () => {
    const gone = await freePort();
    const opened = openTopologyStore("cluster", `127.0.0.1:${gone}`);
    await opened.until((state) => state.kind === "connecting" && state.reason.includes("ECONNREFUSED"));
    await expect(ask(opened.store, checkOf("ann"))).rejects.toMatchObject({ name: "StoreError", transient: true });
    expect(opened.warnings).toEqual([expect.stringContaining(`127.0.0.1:${gone}`)]);
    opened.store.close();
    expect(opened.topology.state).toEqual({ kind: "closed" });
  });

  it("is refused by a server that is no cluster, and the reason is told", async () => {
    const single = await startRedis();
    const opened = openTopologyStore("cluster", `127.0.0.1:${single.port}`);
    const state = await opened.until((seen) => seen.kind === "connecting" && seen.reason.includes("cluster support"));
    expect(state).toMatchObject({ kind: "connecting" });
    opened.store.close();
    await single.stop();
  });

  it("of a store for one server on a cluster node tells what to set", async () => {
    const opened = await connectTopologyStore("single", `127.0.0.1:${cluster.masters[0].port}`);
    const elsewhere = ["ann", "bob", "cid"].find((tag) => masterOf(`{${tag}}`) !== cluster.masters[0]) ?? "";
    await expect(ask(opened.store, checkOf(elsewhere))).rejects.toThrow("REDIS_TYPE=CLUSTER");
    opened.store.close();
  });
});
