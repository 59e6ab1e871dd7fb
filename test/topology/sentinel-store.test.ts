// The store contract on the master that sentinels name, and what the store needs of the sentinels.
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Check } from "../../src/core/ports.ts";
import { ask, type OpenStore, storeContract } from "../contract/store-contract.ts";
import { freePort } from "../support/free-port.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { type SentinelSet, startSentinels } from "../support/redis-sentinel.ts";
import { startRedis } from "../support/redis-server.ts";
import { randomPrefix } from "../support/redis-store.ts";
import { connectTopologyStore, openTopologyStore, type TopologyStore } from "../support/topology-store.ts";

const PASSWORD = "watch";
const CHECK: Check = {
  key: `${randomPrefix()}key`,
  limit: makeLimit({ algorithm: "gcra", requestsPerUnit: 1_000, periodUs: HOUR }),
  hits: 1,
};

let set: SentinelSet;
let admin: Redis;

beforeAll(async () => {
  set = await startSentinels({ sentinelPassword: PASSWORD });
  admin = new Redis(set.master.port, "127.0.0.1");
});
afterAll(async () => {
  admin.disconnect();
  await set.stop();
});

const open: OpenStore = async (clock, prefix) => {
  const all: TopologyStore[] = [];
  const connect = async (): Promise<TopologyStore> => {
    const opened = await connectTopologyStore("sentinel", set.url, { clock, sentinelAuth: PASSWORD });
    all.push(opened);
    return opened;
  };
  const { store } = await connect();
  return {
    store,
    another: async () => (await connect()).store,
    counters: async () => (await admin.keys(`${prefix}*`)).length,
    close: async () => {
      for (const opened of all) opened.store.close();
    },
  };
};

storeContract("the store behind sentinels", open);

describe("the sentinels", () => {
  it("are asked one after the other until one answers", async () => {
    const [, , , last] = set.url.split(",");
    const gone = await freePort();
    const opened = await connectTopologyStore("sentinel", `shop,127.0.0.1:${gone},${last}`, { sentinelAuth: PASSWORD });
    expect(await ask(opened.store, CHECK)).toMatchObject({ allowed: true });
    expect(opened.states[0]).toEqual({ kind: "connecting", reason: expect.stringContaining(`127.0.0.1:${gone}`) });
    opened.store.close();
  });

  it.each([
    ["do not know the master's name", (url: string) => url.replace("shop", "shoppe"), PASSWORD, /No such master/],
    ["want a password", (url: string) => url, "", /NOAUTH|Authentication required/],
    ["want another password", (url: string) => url, "wrong", /WRONGPASS|invalid username-password/],
  ])("that %s keep the store from being ready, and the reason is told", async (_, change, sentinelAuth, reason) => {
    const opened = openTopologyStore("sentinel", change(set.url), { sentinelAuth });
    const state = await opened.until((seen) => seen.kind === "connecting" && reason.test(seen.reason));
    expect(state).toMatchObject({ kind: "connecting" });
    await expect(ask(opened.store, CHECK)).rejects.toMatchObject({ name: "StoreError", transient: true });
    opened.store.close();
    expect(opened.topology.state).toEqual({ kind: "closed" });
  });

  it("that are none, but a Redis, are told from sentinels", async () => {
    const single = await startRedis();
    const opened = openTopologyStore("sentinel", `shop,127.0.0.1:${single.port}`);
    await opened.until((seen) => seen.kind === "connecting" && /unknown command/i.test(seen.reason));
    opened.store.close();
    await single.stop();
  });
});
