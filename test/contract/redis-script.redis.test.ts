// What the Redis store does with its server: one script call for a turn, nothing but its counters, the server's time.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { StoreError } from "../../src/core/errors.ts";
import type { Check } from "../../src/core/ports.ts";
import { HOUR, MINUTE, makeLimit, SECOND } from "../support/make-limit.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { connectRedisStore, type OpenRedisStore, randomPrefix } from "../support/redis-store.ts";
import { ask, askAll } from "./store-contract.ts";

const WINDOW = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 5, periodUs: HOUR });
const GCRA = makeLimit({ algorithm: "gcra", requestsPerUnit: 5, periodUs: HOUR });
const BUCKET = makeLimit({ algorithm: "token_bucket", requestsPerUnit: 5, periodUs: SECOND });

let server: RedisServer;
let redis: OpenRedisStore;
let prefix = "";

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  redis = await connectRedisStore(server.port);
  prefix = randomPrefix();
});
afterEach(() => {
  redis.store.close();
});

/** How often the server ran a command since it started. */
async function callsOf(command: string): Promise<number> {
  const stats = await redis.client.info("commandstats");
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

function checkOf(name: string, hits = 1): Check {
  return { key: `${prefix}${name}`, limit: GCRA, hits };
}

describe("calls", () => {
  it("sends the checks of all requests of one turn as one script call", async () => {
    const before = await callsOf("evalsha");
    const requests = Array.from({ length: 40 }, (_, index) => askAll(redis.store, [checkOf("a"), checkOf(`${index}`)]));
    const answers = await Promise.all(requests);
    expect(answers.filter(([first]) => first?.allowed === true)).toHaveLength(5);
    expect(answers.every(([, second]) => second?.allowed === true)).toBe(true);
    expect((await callsOf("evalsha")) - before).toBe(1);
    expect(await callsOf("eval")).toBe(0);
  });

  it("takes requests together that come one after the other in one turn", async () => {
    const before = await callsOf("evalsha");
    // Each in a callback of its own, with all promises settled between them.
    const answers = await Promise.all(
      ["a", "b", "c"].map(
        (name) => new Promise((resolve) => setImmediate(() => resolve(ask(redis.store, checkOf(name))))),
      ),
    );
    expect(answers).toMatchObject([{ remaining: 4 }, { remaining: 4 }, { remaining: 4 }]);
    expect((await callsOf("evalsha")) - before).toBe(1);
  });

  it("answers every request of a turn in its own mode and order", async () => {
    const limit = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 1, periodUs: HOUR });
    const [a, b] = [`${prefix}a`, `${prefix}b`];
    const answers = await Promise.all([
      askAll(redis.store, [{ key: a, limit, hits: 1 }]),
      askAll(
        redis.store,
        [
          { key: a, limit, hits: 1 },
          { key: b, limit: GCRA, hits: 1 },
        ],
        "spare",
      ),
      askAll(
        redis.store,
        [
          { key: a, limit, hits: 1 },
          { key: b, limit: GCRA, hits: 1 },
        ],
        "each",
      ),
      askAll(redis.store, [{ key: b, limit: GCRA, hits: 0 }]),
    ]);
    expect(answers.map((decisions) => decisions.map(({ allowed, remaining }) => [allowed, remaining]))).toEqual([
      [[true, 0]],
      [
        [false, 0],
        [true, 5],
      ],
      [
        [false, 0],
        [true, 4],
      ],
      [[true, 4]],
    ]);
  });

  it("splits a turn with very many checks, never a request", async () => {
    const before = await callsOf("evalsha");
    const requests = Array.from({ length: 100 }, () =>
      askAll(redis.store, [checkOf("a", 0), checkOf("b", 0), checkOf("c")]),
    );
    const big = askAll(
      redis.store,
      Array.from({ length: 500 }, () => checkOf("d")),
    );
    const answers = await Promise.all(requests);
    expect(answers.filter(([, , last]) => last?.allowed === true)).toHaveLength(5);
    expect((await big).filter(({ allowed }) => allowed)).toHaveLength(5);
    const calls = (await callsOf("evalsha")) - before;
    expect(calls).toBeGreaterThan(2);
    expect(calls).toBeLessThan(10);
  });

  it("survives SCRIPT FLUSH: the script is sent again and nothing is counted twice", async () => {
    await ask(redis.store, checkOf("a"));
    await redis.client.script("FLUSH");
    const answers = await Promise.all([ask(redis.store, checkOf("a")), ask(redis.store, checkOf("b"))]);
    expect(answers.map(({ remaining }) => remaining)).toEqual([3, 4]);
    const evals = await callsOf("eval");
    expect(await ask(redis.store, checkOf("a"))).toMatchObject({ remaining: 2 });
    expect(await callsOf("eval")).toBe(evals);
  });

  it("sends nothing again when the call itself is refused", async () => {
    const admin = redis.client.duplicate();
    await admin.connect();
    await admin.acl("SETUSER", "default", "-evalsha");
    try {
      await expect(ask(redis.store, checkOf("a"))).rejects.toMatchObject({ name: "StoreError", transient: true });
    } finally {
      await admin.acl("SETUSER", "default", "+evalsha");
      admin.disconnect();
    }
    expect(await ask(redis.store, checkOf("a", 0))).toMatchObject({ remaining: 5 });
  });

  it("sends nothing for a request without checks", async () => {
    const before = await callsOf("evalsha");
    expect(redis.store.evaluate([], "each", [], 1_000)).toBeUndefined();
    await ask(redis.store, checkOf("a"));
    expect((await callsOf("evalsha")) - before).toBe(1);
  });
});

describe("a key that holds something else", () => {
  it.each([
    ["a list", (key: string) => redis.client.rpush(key, "x")],
    ["a hash", (key: string) => redis.client.hset(key, "field", "value")],
    ["a text", (key: string) => redis.client.set(key, "17")],
    ["an empty text", (key: string) => redis.client.set(key, "")],
    ["the state of another algorithm", (key: string) => ask(redis.store, { key, limit: WINDOW, hits: 1 })],
  ])("%s fails its own request and no other of the turn", async (_, put) => {
    const bad = `${prefix}bad`;
    await put(bad);
    const before = await redis.client.dump(bad);
    const [first, failed, last, look] = await Promise.allSettled([
      ask(redis.store, checkOf("a")),
      askAll(redis.store, [checkOf("b"), { key: bad, limit: GCRA, hits: 1 }, checkOf("b")]),
      askAll(redis.store, [checkOf("a"), checkOf("c")], "spare"),
      ask(redis.store, { key: bad, limit: GCRA, hits: 0 }),
    ]);
    expect(first).toMatchObject({ status: "fulfilled", value: { remaining: 4 } });
    expect(last).toMatchObject({ status: "fulfilled", value: [{ remaining: 3 }, { remaining: 4 }] });
    for (const rejection of [failed, look]) {
      expect(rejection).toMatchObject({ status: "rejected", reason: { name: "StoreError", transient: false } });
      expect(rejection).toHaveProperty("reason.message", expect.stringContaining("something else"));
    }
    expect(await redis.client.dump(bad)).toEqual(before);
    await redis.store.reset(bad);
    expect(await ask(redis.store, { key: bad, limit: GCRA, hits: 1 })).toMatchObject({ remaining: 4 });
  });
});

describe("counters in Redis", () => {
  it("all expire, a little after they are as good as new", async () => {
    const charged = askAll(redis.store, [
      { key: `${prefix}window`, limit: WINDOW, hits: 1 },
      { key: `${prefix}gcra`, limit: GCRA, hits: 2 },
      { key: `${prefix}bucket`, limit: BUCKET, hits: 5 },
      { key: `${prefix}refund`, limit: GCRA, hits: 1 },
      { key: `${prefix}refund`, limit: GCRA, hits: -1 },
    ]);
    // Once the call is on its way the questions can follow it at once, before any real time passes at the server.
    await new Promise((resolve) => setImmediate(resolve));
    const names = ["gcra", "bucket", "refund", "window"];
    const [kept, ...ttls] = await Promise.all([
      redis.client.keys(`${prefix}*`),
      ...names.map((name) => redis.client.pttl(`${prefix}${name}`)),
    ]);
    await charged;
    expect(kept.sort()).toEqual(["bucket", "gcra", "refund", "window"].map((name) => `${prefix}${name}`));
    for (const [index, fullMs] of [2 * 720_000 + 1_000, 1_000 + 1_000, 1_000].entries()) {
      expect(ttls[index]).toBeLessThanOrEqual(fullMs);
      expect(ttls[index]).toBeGreaterThan(fullMs - 1_000);
    }
    expect(ttls[3]).toBeLessThanOrEqual(3_601_000);
    expect(ttls[3]).toBeGreaterThan(0);
  });

  it("take the time from Redis and not from this process", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 0 });
    try {
      const before = await serverTimeUs();
      await ask(redis.store, checkOf("a"));
      const after = await serverTimeUs();
      const state = await redis.client.getBuffer(`${prefix}a`);
      const stampUs = state?.readDoubleBE(24) ?? 0;
      expect(stampUs).toBeGreaterThanOrEqual(before);
      expect(stampUs).toBeLessThanOrEqual(after);
    } finally {
      vi.useRealTimers();
    }
  });

  it("are the only keys that are touched, each by the request that named it", async () => {
    const monitor = await redis.client.duplicate().monitor();
    try {
      const seen: string[][] = [];
      monitor.on("monitor", (_time: string, args: string[], source: string) => {
        if (source.startsWith("lua") || args[0]?.toLowerCase() === "evalsha") seen.push(args);
      });
      await askAll(redis.store, [checkOf("a"), checkOf("b", 0), checkOf("c", -1)], "spare");
      const ended = new Promise((resolve) =>
        monitor.on("monitor", (_time: string, args: string[]) => {
          if (args.includes(`${prefix}end`)) resolve(undefined);
        }),
      );
      await redis.client.echo(`${prefix}end`);
      await ended;
      const declared = seen.find(([name]) => name?.toLowerCase() === "evalsha")?.slice(3, 6);
      expect(declared).toEqual([`${prefix}a`, `${prefix}b`, `${prefix}c`]);
      const inside = seen.filter(([name]) => name?.toLowerCase() !== "evalsha");
      expect(inside.map(([name]) => name)).toContain("TIME");
      for (const [name, key] of inside) if (name !== "TIME") expect(declared).toContain(key);
      // Nothing was there to look at or to give back to.
      expect(inside.filter(([name]) => name === "SET").map(([, key]) => key)).toEqual([`${prefix}a`]);
    } finally {
      monitor.disconnect();
    }
  });

  it("are not written when Redis is full: charging fails, looking and refusing still work", async () => {
    const limit = makeLimit({ algorithm: "gcra", requestsPerUnit: 1, periodUs: MINUTE });
    const key = `${prefix}full`;
    await ask(redis.store, { key, limit, hits: 1 });
    await redis.client.config("SET", "maxmemory", "1");
    try {
      await expect(ask(redis.store, checkOf("a"))).rejects.toMatchObject({ name: "StoreError", transient: true });
      await expect(ask(redis.store, checkOf("a"))).rejects.toThrow("refused to write");
      const [failed, refused, look] = await Promise.allSettled([
        ask(redis.store, checkOf("b")),
        ask(redis.store, { key, limit, hits: 1 }),
        ask(redis.store, checkOf("b", 0)),
      ]);
      expect(failed).toMatchObject({ status: "rejected", reason: expect.any(StoreError) });
      expect(refused).toMatchObject({ status: "fulfilled", value: { allowed: false } });
      expect(look).toMatchObject({ status: "fulfilled", value: { allowed: true, remaining: 5 } });
    } finally {
      await redis.client.config("SET", "maxmemory", "0");
    }
    expect(await ask(redis.store, checkOf("a"))).toMatchObject({ remaining: 4 });
  });
});

describe("a sliding window log in Redis", () => {
  const LOG = makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: 5, periodUs: HOUR });
  const WRITES = ["set", "setrange", "pexpire", "append", "del"];
  const writes = async (): Promise<number> => {
    let calls = 0;
    for (const command of WRITES) calls += await callsOf(command);
    return calls;
  };

  it("takes 12 bytes for each microsecond with hits, and expires a window after the newest", async () => {
    const key = `${prefix}log`;
    for (let hit = 0; hit < 3; hit++) {
      await ask(redis.store, { key, limit: LOG, hits: 1 });
      if (hit < 2) await redis.client.pexpire(key, 60_000);
    }
    expect(await redis.client.strlen(key)).toBe(4 + 3 * 12);
    const ttlMs = await redis.client.pttl(key);
    expect(ttlMs).toBeLessThanOrEqual(3_601_000);
    expect(ttlMs).toBeGreaterThan(3_600_000);
  });

  it("is not written by refusals and looks, and by a hit without moving the others", async () => {
    const key = `${prefix}log`;
    await ask(redis.store, { key, limit: LOG, hits: 3 });
    const [before, sets] = [await writes(), await callsOf("set")];
    await ask(redis.store, { key, limit: LOG, hits: 3 });
    await ask(redis.store, { key, limit: LOG, hits: 0 });
    expect(await writes()).toBe(before);
    await ask(redis.store, { key, limit: LOG, hits: 1 });
    expect(await callsOf("set")).toBe(sets);
  });

  it("stays as small when refused hits are counted", async () => {
    const key = `${prefix}log`;
    const limit = makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: 5, periodUs: HOUR, countDenied: true });
    for (let hit = 0; hit < 40; hit++) {
      await ask(redis.store, { key, limit, hits: 1 });
      expect(await redis.client.strlen(key)).toBeLessThanOrEqual(4 + 7 * 12);
    }
  });

  it.each([0, 3, 15, 17])("is not mistaken for a text of %d bytes", async (bytes) => {
    const key = `${prefix}log`;
    await redis.client.set(key, "x".repeat(bytes));
    await expect(ask(redis.store, { key, limit: LOG, hits: 1 })).rejects.toThrow("something else");
  });

  it("is not written when Redis is full, not even in part", async () => {
    const key = `${prefix}log`;
    await ask(redis.store, { key, limit: LOG, hits: 1 });
    const before = await redis.client.getBuffer(key);
    await redis.client.config("SET", "maxmemory", "1");
    try {
      await expect(ask(redis.store, { key, limit: LOG, hits: 1 })).rejects.toThrow("refused to write");
      expect(await redis.client.getBuffer(key)).toEqual(before);
    } finally {
      await redis.client.config("SET", "maxmemory", "0");
    }
  });
});

describe("a sliding window counter in Redis", () => {
  const counter = (segments?: number) =>
    makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: 5, periodUs: HOUR, segments });

  it.each<[number | undefined, number]>([
    [undefined, 3],
    [1, 3],
    [6, 8],
    [100, 102],
  ])("in segments: %s keeps %d numbers, whatever comes", async (segments, numbers) => {
    const [key, limit] = [`${prefix}counter`, counter(segments)];
    for (let hit = 0; hit < 7; hit++) await ask(redis.store, { key, limit, hits: 1 });
    expect(await redis.client.strlen(key)).toBe(8 * numbers);
  });

  it("refuses a state with another number of segments", async () => {
    const key = `${prefix}counter`;
    await ask(redis.store, { key, limit: counter(6), hits: 1 });
    await expect(ask(redis.store, { key, limit: counter(7), hits: 1 })).rejects.toThrow("something else");
  });
});

describe("the server", () => {
  it("is warned about when its eviction policy may drop counters", async () => {
    expect(redis.warnings).toEqual([]);
    await redis.client.config("SET", "maxmemory-policy", "allkeys-lru");
    const warned = await connectRedisStore(server.port);
    expect(warned.warnings).toEqual([expect.stringContaining("allkeys-lru")]);
    warned.store.close();
    await redis.client.config("SET", "maxmemory-policy", "noeviction");
  });

  it("is named once it is ready", async () => {
    expect(redis.connection.state).toEqual({ kind: "ready", server: expect.stringMatching(/^Redis \d+\.\d+\.\d+$/) });
  });
});

async function serverTimeUs(): Promise<number> {
  const [seconds = 0, micros = 0] = (await redis.client.time()).map(Number);
  return seconds * 1_000_000 + micros;
}
