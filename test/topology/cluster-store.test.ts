// The store contract on a real cluster: with all counters in one slot, and with the counters of a request spread.
import { afterAll, beforeAll } from "vitest";
import { type OpenStore, storeContract } from "../contract/store-contract.ts";
import { storeTables } from "../contract/store-tables.ts";
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
