// A slot on its way to another node while it is counted in: nothing is lost and nothing counts twice.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import type { Check } from "../../src/core/ports.ts";
import { ask, askAll } from "../contract/store-contract.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { slotOf } from "../support/hash-slot.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { type ClusterNode, type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { errorsOf } from "../support/redis-stats.ts";
import { connectTopologyStore, type TopologyStore } from "../support/topology-store.ts";

/** Counts every hit that reached it, so that it shows how often checks ran. */
const COUNTS = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 1_000_000, periodUs: HOUR });
const FULL = 1_000_000;
/** Lets so many pass and no more while the clock stands. */
const LETS_PASS = 4;
const LIMITS = makeLimit({ algorithm: "gcra", requestsPerUnit: LETS_PASS, periodUs: HOUR });

const KEYS = 40;
const TAG = "{moving tenant}";
const SLOT = slotOf(TAG);

const clock = new FakeClock();
let cluster: RedisCluster;
let stores: TopologyStore[];

beforeAll(async () => {
  cluster = await startCluster();
  stores = await Promise.all([0, 1].map(() => connectTopologyStore("cluster", cluster.url, { clock })));
});
afterAll(async () => {
  for (const { store } of stores) store.close();
  await cluster.stop();
});

/** What was asked for and what came back. */
class Load {
  readonly asked = new Map<string, number>();
  readonly passed = new Map<string, number>();
  readonly #underWay: Promise<unknown>[] = [];
  #turn = 0;

  /** One turn of every store: requests with one key and with several, on counters that are there and on new ones. */
  async turn(): Promise<void> {
    const turn = this.#turn++;
    for (const [index, { store }] of stores.entries()) {
      const pick = (step: number): string => `${TAG}:${(turn * 7 + step * 3 + index) % KEYS}`;
      const fresh = `${TAG}:new:${turn}:${index}`;
      const requests: [Check[], "each" | "spare"][] = [
        [[pick(0), pick(1), fresh].map(counts), "each"],
        [[pick(2), `${fresh}:spared`].map(counts), "spare"],
        [[`${fresh}:a`, `${fresh}:b`].map(counts), "each"],
        [[pick(3)].map(limits), "each"],
        [[pick(4), pick(5)].map(limits), "each"],
        // On other nodes, so that the request is spread.
        [[counts(pick(6)), counts(`{other ${turn % 5}}`)], "spare"],
      ];
      for (const [checks, mode] of requests) {
        this.#underWay.push(askAll(store, checks, mode).then((decisions) => this.#note(checks, decisions)));
      }
    }
    await Promise.all(this.#underWay.splice(0));
  }

  #note(checks: readonly Check[], decisions: readonly Decision[]): void {
    for (const [index, { key }] of checks.entries()) {
      this.asked.set(key, (this.asked.get(key) ?? 0) + 1);
      if (decisions[index]?.allowed === true) this.passed.set(key, (this.passed.get(key) ?? 0) + 1);
    }
  }
}

function counts(name: string): Check {
  return { key: `counts:${name}`, limit: COUNTS, hits: 1 };
}

function limits(name: string): Check {
  return { key: `limits:${name}`, limit: LIMITS, hits: 1 };
}

async function keysInSlot({ admin }: ClusterNode, most: number): Promise<string[]> {
  return (await admin.call("CLUSTER", "GETKEYSINSLOT", SLOT, most)) as string[];
}

describe("a slot that is moved under load", () => {
  it("counts every check once and lets no more pass than the limit", async () => {
    const [first, second, third] = cluster.masters;
    const from = [first, second, third].find(
      (_, index) => SLOT <= ([5_460, 10_922, 16_383][index] ?? 0),
    ) as ClusterNode;
    const to = from === third ? first : third;
    const load = new Load();
    for (let turn = 0; turn < 10; turn++) await load.turn();

    await to.admin.call("CLUSTER", "SETSLOT", SLOT, "IMPORTING", from.id);
    await from.admin.call("CLUSTER", "SETSLOT", SLOT, "MIGRATING", to.id);
    await load.turn();
    for (;;) {
      const keys = await keysInSlot(from, 3);
      if (keys.length === 0) break;
      // Under way together with the load.
      await Promise.all([load.turn(), from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5_000, "KEYS", ...keys)]);
    }
    await load.turn();
    for (const { admin } of [to, from, ...cluster.masters]) {
      await admin.call("CLUSTER", "SETSLOT", SLOT, "NODE", to.id);
      await load.turn();
    }
    for (let turn = 0; turn < 10; turn++) await load.turn();

    // The load met everything there is to meet.
    expect(await errorsOf(from.admin, "ASK")).toBeGreaterThan(0);
    expect((await errorsOf(from.admin, "TRYAGAIN")) + (await errorsOf(to.admin, "TRYAGAIN"))).toBeGreaterThan(0);
    expect(await keysInSlot(from, 1)).toEqual([]);

    const [reader] = stores;
    const used = new Map<string, number>();
    const over: string[] = [];
    for (const [key, asked] of load.asked) {
      if (key.startsWith("counts:")) {
        const { remaining } = await ask((reader as TopologyStore).store, { key, limit: COUNTS, hits: 0 });
        used.set(key, FULL - remaining);
      } else if ((load.passed.get(key) ?? 0) !== Math.min(asked, LETS_PASS)) {
        over.push(key);
      }
    }
    const counted = new Map([...load.asked].filter(([key]) => key.startsWith("counts:")));
    expect(used).toEqual(counted);
    expect(over).toEqual([]);
    // Some counters were pressed beyond their limit.
    expect([...load.asked].some(([key, asked]) => key.startsWith("limits:") && asked > LETS_PASS)).toBe(true);
  });
});
