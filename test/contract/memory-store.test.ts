import { MemoryStore } from "../../src/stores/memory/store.ts";
import { atomicContract } from "./atomic-contract.ts";
import { type OpenStore, storeContract } from "./store-contract.ts";
import { storeTables } from "./store-tables.ts";

const open: OpenStore = async (clock) => {
  const store = new MemoryStore({ clock, maxCounters: 10_000 });
  return {
    store,
    another: async () => store,
    counters: async () => store.size,
    close: async () => store.close(),
  };
};

storeContract("the memory store", open);
storeTables("the memory store", open);
atomicContract("the memory store", open);
