// The store contract on a real cluster: with all counters in one slot, and with the counters of a request spread.
import { afterAll, beforeAll, expect, it } from "vitest";
import { newDecision } from "../../src/core/decision.ts";
import { atomicContract } from "../contract/atomic-contract.ts";
import { type OpenStore, storeContract } from "../contract/store-contract.ts";
import { storeTables } from "../contract/store-tables.ts";
import { DAY, makeLimit } from "../support/make-limit.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { randomPrefix } from "../support/redis-store.ts";
import { connectTopologyStore, type TopologyStore } from "../support/topology-store.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const open: OpenStore = async (clock, prefix) => {
  const all: TopologyStore[] = [];
  const connect = async (): Promise<TopologyStore> => {
    const opened = await connectTopologyStore("cluster", cluster.url, { clock });
    all.push(opened);
    return opened;
  };
  const { store } = await connect();
  return {
    store,
    another: async () => (await connect()).store,
    counters: async () => {
      const keys = await Promise.all(cluster.masters.map(({ admin }) => admin.keys(`${prefix}*`)));
      return keys.flat().length;
    },
    close: async () => {
      for (const opened of all) opened.store.close();
    },
  };
};

storeContract("the store on a cluster, in one slot,", open, { prefix: `{${randomPrefix()}}` });
storeContract("the store on a cluster, across slots,", open, { apart: true });
storeTables("the store on a cluster", open);
atomicContract("the store on a cluster", open);

it("never lets atomic requests across slots take more than either limit allows, and leaves no hits behind", async () => {
  const { store } = await connectTopologyStore("cluster", cluster.url, {});
  const prefix = randomPrefix();
  const limit = (requestsPerUnit: number) =>
    makeLimit({ algorithm: "fixed_window", requestsPerUnit, periodUs: 365 * DAY, countDenied: false });
  const checks = (hits: number) => [
    { key: `${prefix}{a}`, limit: limit(20), hits },
    { key: `${prefix}{b}`, limit: limit(30), hits },
    { key: `${prefix}{c}`, limit: limit(25), hits },
  ];
  const ask = async (hits: number) => {
    const decisions = checks(hits).map(newDecision);
    await store.evaluate(checks(hits), "atomic", decisions, 10_000);
    return decisions;
  };
  const answers = await Promise.all(Array.from({ length: 100 }, () => ask(1)));
  const passed = answers.filter((decisions) => decisions.every(({ allowed }) => allowed)).length;
  // Requests that take turns may refuse one another, so fewer than 20 may pass, but at least the first in each slot does.
  expect(passed).toBeGreaterThan(0);
  expect(passed).toBeLessThanOrEqual(20);
  expect((await ask(0)).map(({ remaining }) => remaining)).toEqual([20 - passed, 30 - passed, 25 - passed]);
  store.close();
});
