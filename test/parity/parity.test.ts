// The twins: for any history the TypeScript and the Lua of an algorithm give the same answers to the microsecond, and
// both the oracle's.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/stores/memory/store.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { test } from "../support/property.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { connectRedisStore } from "../support/redis-store.ts";
import { type History, histories } from "./history.ts";
import { PlainStore } from "./plain-store.ts";
import regressions from "./regressions.json" with { type: "json" };
import { type RedisSide, type ReplayOptions, replay } from "./replay.ts";

let server: RedisServer;
let redis: RedisSide;

beforeAll(async () => {
  server = await startRedis();
  const clock = new FakeClock();
  redis = { ...(await connectRedisStore(server.port, { clock })), clock };
});

afterAll(async () => {
  redis.store.close();
  await server.stop();
});

/** Histories may go back behind any expiry: nothing is ever forgotten. */
const unforgetting: ReplayOptions = { open: (clock) => new PlainStore(clock), expireEarly: false };
const memory: ReplayOptions = { open: (clock) => new MemoryStore({ clock, maxCounters: 1_000 }), expireEarly: true };

describe("TypeScript = Lua = oracle", () => {
  test(
    "on any history of the algorithms alone",
    [histories],
    (history) => replay(eachMode(history), redis, unforgetting),
    { runs: 120 },
  );

  test("on any history of the memory store", [histories], (history) => replay(history, redis, memory), { runs: 120 });

  // Found by the properties above, or by hand; each says what it was.
  it.each(regressions as readonly { why: string; history: History }[])("$why", async ({ history }) => {
    await replay(eachMode(history), redis, unforgetting);
    await replay(history, redis, memory);
    expect(redis.connection.state.kind).toBe("ready");
  });
});

function eachMode(history: History): History {
  return { ...history, steps: history.steps.map((step) => ({ ...step, mode: "each" })) };
}
