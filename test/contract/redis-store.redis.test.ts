import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { connectRedisStore, type OpenRedisStore } from "../support/redis-store.ts";
import { atomicContract } from "./atomic-contract.ts";
import { type OpenStore, storeContract } from "./store-contract.ts";
import { storeTables } from "./store-tables.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const open: OpenStore = async (clock, prefix) => {
  const all: OpenRedisStore[] = [];
  const connect = async (): Promise<OpenRedisStore> => {
    const opened = await connectRedisStore(server.port, { clock });
    all.push(opened);
    return opened;
  };
  const { store, client } = await connect();
  return {
    store,
    another: async () => (await connect()).store,
    counters: async () => (await client.keys(`${prefix}*`)).length,
    close: async () => {
      for (const opened of all) opened.store.close();
    },
  };
};

storeContract("the Redis store", open);
storeTables("the Redis store", open);
atomicContract("the Redis store", open);
