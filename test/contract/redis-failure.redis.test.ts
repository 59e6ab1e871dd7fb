// What the Redis store does when its server is slow, frozen, gone or unwilling: it says so in time, and never counts
// a request twice.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Check } from "../../src/core/ports.ts";
import { eventually } from "../support/eventually.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import {
  connectRedisStore,
  type OpenRedisStore,
  openRedisStore,
  type RedisStoreSetup,
  randomPrefix,
} from "../support/redis-store.ts";
import { startTcpSwitch } from "../support/tcp-switch.ts";
import { ask, askAll } from "./store-contract.ts";

const LIMIT = makeLimit({ algorithm: "gcra", requestsPerUnit: 100, periodUs: HOUR });

const servers: RedisServer[] = [];
const stores: OpenRedisStore[] = [];
let check: Check;

beforeEach(() => {
  check = { key: `${randomPrefix()}key`, limit: LIMIT, hits: 1 };
});
afterEach(async () => {
  for (const { store } of stores.splice(0)) store.close();
  for (const server of servers.splice(0)) {
    thaw(server);
    await server.stop();
  }
});

async function start(args: readonly string[] = [], port?: number): Promise<RedisServer> {
  const server = await startRedis(args, port);
  servers.push(server);
  return server;
}

async function connect(server: RedisServer, setup: RedisStoreSetup = {}): Promise<OpenRedisStore> {
  const opened = await connectRedisStore(server.port, setup);
  stores.push(opened);
  return opened;
}

/** The server stops as if its machine stood still: connections stay open and nothing is answered. */
function freeze(server: RedisServer): void {
  server.process.kill("SIGSTOP");
}

function thaw(server: RedisServer): void {
  server.process.kill("SIGCONT");
}

/** Resolves once the client has given up for good. Errors on the way there are of no interest. */
function endOf({ client }: OpenRedisStore): Promise<void> {
  return new Promise((resolve) => client.once("end", () => resolve()));
}

/** Milliseconds until the promise was rejected, and with what. */
async function rejection(promise: Promise<unknown>): Promise<{ afterMs: number; error: unknown }> {
  const startMs = performance.now();
  try {
    await promise;
  } catch (error) {
    return { afterMs: performance.now() - startMs, error };
  }
  throw new Error("it was not rejected");
}

async function evalshaCalls({ client }: OpenRedisStore): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info("commandstats"))?.[1] ?? 0);
}

describe("deadlines", () => {
  it.each([0, -1, Number.NEGATIVE_INFINITY])(
    "a budget of %d ms is over before Redis is asked: nothing is charged",
    async (budgetMs) => {
      const redis = await connect(await start());
      const { error } = await rejection(ask(redis.store, check, budgetMs));
      expect(error).toMatchObject({ name: "StoreError", transient: true });
      expect(await ask(redis.store, { ...check, hits: 0 })).toMatchObject({ remaining: 100 });
    },
  );

  it("fails a request at its own budget while Redis is frozen, and others at theirs", async () => {
    const server = await start();
    const redis = await connect(server, { deadlineMs: 400 });
    freeze(server);
    const [short, longer, longest] = await Promise.all(
      [60, 200, Number.POSITIVE_INFINITY].map((budgetMs) => rejection(ask(redis.store, check, budgetMs))),
    );
    for (const [failure, budgetMs] of [
      [short, 60],
      [longer, 200],
      [longest, 400],
    ] as const) {
      expect(failure?.error).toMatchObject({ name: "StoreError", transient: true });
      expect(failure?.afterMs).toBeGreaterThanOrEqual(budgetMs - 1);
      expect(failure?.afterMs).toBeLessThan(budgetMs + 150);
    }
  });

  it("fails every request of a crowded turn whose time ends while it is being sent", async () => {
    const server = await start();
    const redis = await connect(server, { deadlineMs: 10_000 });
    freeze(server);
    // Budgets in steps of a few microseconds around the moment of sending.
    const requests = Array.from({ length: 3_000 }, (_, index) => rejection(ask(redis.store, check, index / 100)));
    const failures = await Promise.all(requests);
    expect(Math.max(...failures.map(({ afterMs }) => afterMs))).toBeLessThan(1_000);
  });

  it("fails giving up a counter in time as well", async () => {
    const server = await start();
    const redis = await connect(server, { deadlineMs: 100 });
    freeze(server);
    const { error, afterMs } = await rejection(Promise.resolve(redis.store.reset(check.key)));
    expect(error).toMatchObject({ name: "StoreError" });
    expect(afterMs).toBeLessThan(1_000);
  }, 5_000);

  it("answers again once Redis thaws; what ran late was counted once", async () => {
    const server = await start();
    const redis = await connect(server, { deadlineMs: 50 });
    freeze(server);
    await rejection(ask(redis.store, check));
    await rejection(ask(redis.store, check));
    thaw(server);
    const patient = await connect(server);
    expect(await ask(patient.store, { ...check, hits: 0 })).toMatchObject({ remaining: 98 });
    // On the same connection, so behind both.
    expect(await ask(redis.store, check, 10_000)).toMatchObject({ allowed: true });
    expect(await ask(patient.store, { ...check, hits: 0 })).toMatchObject({ remaining: 97 });
  });
});

describe("a lost connection", () => {
  it("fails what was under way, and the script of it ran at most once", async () => {
    const server = await start();
    const redis = await connect(server);
    const watcher = await connect(server);
    await ask(redis.store, check);
    const before = await evalshaCalls(watcher);
    freeze(server);
    const pending = rejection(ask(redis.store, check));
    // After the turn in which it was sent.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    redis.client.stream.destroy();
    const { error } = await pending;
    expect(error).toMatchObject({ name: "StoreError", transient: true });
    thaw(server);
    await redis.until(({ kind }) => kind === "ready");
    // The dry call of the new connection, and the one that was under way unless the server dropped it.
    const calls = (await evalshaCalls(watcher)) - before;
    const { remaining } = await ask(watcher.store, { ...check, hits: 0 });
    expect([
      [1, 99],
      [2, 98],
    ]).toContainEqual([calls, remaining]);
  });

  it("fails at once while the server is gone, and works again when it is back; nothing was sent again", async () => {
    const server = await start();
    const redis = await connect(server);
    await ask(redis.store, check);
    freeze(server);
    const underWay = [ask(redis.store, check), askAll(redis.store, [check, check])].map(rejection);
    await new Promise((resolve) => setImmediate(resolve));
    const gone = redis.until(({ kind }) => kind === "connecting");
    await server.stop();
    for (const { error } of await Promise.all(underWay))
      expect(error).toMatchObject({ name: "StoreError", transient: true });
    await gone;
    const { error, afterMs } = await rejection(ask(redis.store, check));
    expect(error).toMatchObject({ name: "StoreError", transient: true });
    expect(String(error)).toContain("not connected");
    expect(afterMs).toBeLessThan(100);
    const again = await start([], server.port);
    await redis.until(({ kind }) => kind === "ready");
    // The dry call only.
    expect(await evalshaCalls(redis)).toBe(1);
    expect(again.port).toBe(server.port);
    expect(await ask(redis.store, check)).toMatchObject({ allowed: true, remaining: 99 });
  });

  it("is not made up for after the store was closed", async () => {
    const server = await start();
    const redis = await connect(server);
    const underWay = rejection(ask(redis.store, check));
    redis.store.close();
    expect((await underWay).error).toMatchObject({ name: "StoreError" });
    expect((await rejection(ask(redis.store, check))).error).toMatchObject({ name: "StoreError" });
    expect((await rejection(Promise.resolve(redis.store.reset(check.key)))).error).toMatchObject({
      name: "StoreError",
    });
    expect(redis.connection.state).toEqual({ kind: "closed" });
    expect(redis.states.at(-1)).toEqual({ kind: "closed" });
  });
});

describe("closing", () => {
  it.each(["before", "while", "after"])("ends the connection for good, %s it is made", async (when) => {
    const server = await start();
    const redis = openRedisStore(server.port);
    if (when === "while") await once(redis.client, "connect");
    if (when === "after") await redis.until(({ kind }) => kind === "ready");
    const ended = endOf(redis);
    redis.store.close();
    await ended;
    expect(redis.states.at(-1)).toEqual({ kind: "closed" });
    expect(redis.states.filter(({ kind }) => kind === "closed")).toHaveLength(1);
    expect(redis.client.status).toBe("end");
  });

  it("ends what is under way with an error, and nothing is tried again", async () => {
    const server = await start();
    const redis = await connect(server);
    freeze(server);
    const underWay = rejection(ask(redis.store, check));
    await new Promise((resolve) => setImmediate(resolve));
    const ended = endOf(redis);
    redis.store.close();
    expect((await underWay).error).toMatchObject({ name: "StoreError", transient: true });
    await ended;
    expect(redis.connection.state).toEqual({ kind: "closed" });
  });
});

describe("a server that takes no writes for now", () => {
  it("because it was made a replica is left for the one that took over, in the same call and once", async () => {
    const [old, next] = [await start(["--repl-diskless-sync-delay", "0"]), await start()];
    const address = await startTcpSwitch(old.port);
    onTestFinished(() => address.stop());
    const redis = await connectRedisStore(address.port);
    stores.push(redis);
    const [onOld, onNext] = [await connect(old), await connect(next)];
    await ask(redis.store, check);
    await onNext.client.replicaof("127.0.0.1", old.port);
    await eventually("the replica has the counter", async () => (await onNext.client.exists(check.key)) || undefined);
    await onNext.client.replicaof("NO", "ONE");
    await onOld.client.replicaof("127.0.0.1", next.port);
    address.turnTo(next.port);
    const answers = await Promise.all([ask(redis.store, check), askAll(redis.store, [check, check])]);
    expect(answers).toMatchObject([{ remaining: 98 }, [{ remaining: 97 }, { remaining: 96 }]]);
    expect(redis.states.map(({ kind }) => kind)).toEqual(["ready", "connecting", "ready"]);
    expect(redis.states[1]).toMatchObject({ reason: expect.stringContaining("READONLY") });
  });

  it("because it is a replica, for good, is not left again and again", async () => {
    const primary = await start();
    const replica = await start(["--replicaof", "127.0.0.1", `${primary.port}`]);
    const redis = await connect(replica);
    const answers: PromiseSettledResult<unknown>[] = [];
    const end = performance.now() + 500;
    while (performance.now() < end) answers.push(...(await Promise.allSettled([ask(redis.store, check)])));
    expect(answers.length).toBeGreaterThan(10);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: "rejected", reason: { name: "StoreError", transient: true } });
    }
    expect(redis.states.filter(({ kind }) => kind === "connecting")).toHaveLength(1);
  });

  it("because it loads its data is waited for, and the call runs once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-loading-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    // It listens while it loads, once for each kilobyte.
    const listens = ["--loading-process-events-interval-bytes", "1024"];
    const server = await start(["--dir", folder, "--enable-debug-command", "local", ...listens]);
    const redis = await connect(server);
    await ask(redis.store, check);
    const admin = await connect(server);
    await admin.client.call("DEBUG", "POPULATE", 500, "filler", 100);
    // A millisecond for each key.
    await admin.client.config("SET", "key-load-delay", "1000");
    const reloaded = admin.client.call("DEBUG", "RELOAD");
    // On its way behind the reload, so that it meets a server that loads.
    await new Promise((resolve) => setImmediate(resolve));
    const answer = await ask(redis.store, check);
    await reloaded;
    expect(answer).toMatchObject({ allowed: true, remaining: 98 });
    expect(redis.states.map((state) => (state.kind === "connecting" ? state.reason.slice(0, 7) : state.kind))).toEqual([
      "ready",
      "LOADING",
      "ready",
    ]);
  });
});

describe("a server that cannot be used", () => {
  it("because it is a replica refuses to count, and looks still work", async () => {
    const primary = await start();
    const replica = await start(["--replicaof", "127.0.0.1", `${primary.port}`]);
    const redis = await connect(replica);
    await expect(ask(redis.store, check)).rejects.toMatchObject({ name: "StoreError", transient: true });
    expect(await ask(redis.store, { ...check, hits: 0 })).toMatchObject({ allowed: true, remaining: 100 });
    await redis.client.replicaof("NO", "ONE");
    expect(await ask(redis.store, check)).toMatchObject({ allowed: true, remaining: 99 });
  });

  it("is tried again until it is there", async () => {
    const server = await start();
    await server.stop();
    const redis = openRedisStore(server.port);
    stores.push(redis);
    const refused = await redis.until((state) => state.kind === "connecting" && state.reason.includes("ECONNREFUSED"));
    expect(refused.kind).toBe("connecting");
    expect(String((await rejection(ask(redis.store, check))).error)).toContain("ECONNREFUSED");
    await start([], server.port);
    await redis.until(({ kind }) => kind === "ready");
    expect(await ask(redis.store, check)).toMatchObject({ remaining: 99 });
  });

  it("is never ready without a password that it wants, and the reason is kept", async () => {
    const server = await start(["--requirepass", "secret"]);
    const redis = openRedisStore(server.port, { auth: "wrong" });
    stores.push(redis);
    await redis.until((state) => state.kind === "connecting" && /WRONGPASS|NOAUTH/.test(state.reason));
    expect(redis.states.some(({ kind }) => kind === "ready")).toBe(false);
    const right = await connect(server, { auth: "secret" });
    expect(await ask(right.store, check)).toMatchObject({ remaining: 99 });
  });

  it("says why as long as it cannot be used, also between two attempts", async () => {
    const server = await start();
    const admin = await connect(server);
    await admin.client.acl("SETUSER", "limited", "on", ">pw", "~*", "+@all", "-script");
    const redis = openRedisStore(server.port, { auth: "limited:pw" });
    stores.push(redis);
    const isDenied = (reason: string): boolean => /NOPERM|no permissions/i.test(reason);
    await redis.until((state) => state.kind === "connecting" && isDenied(state.reason));
    const from = redis.states.length;
    await redis.until(() => redis.states.length >= from + 6);
    for (const state of redis.states.slice(from)) {
      expect(state).toEqual({ kind: "connecting", reason: expect.stringMatching(/NOPERM|no permissions/i) });
    }
  });

  it("that accepts connections and says nothing is given up after the connect timeout", async () => {
    const server = await start();
    freeze(server);
    const redis = openRedisStore(server.port, { connectTimeoutMs: 200 });
    stores.push(redis);
    const attempts: string[] = [];
    redis.client.on("connect", () => attempts.push("connect"));
    await redis.until((state) => state.kind === "connecting" && redis.states.length > 0);
    thaw(server);
    await redis.until(({ kind }) => kind === "ready");
    expect(await ask(redis.store, check)).toMatchObject({ remaining: 99 });
  }, 5_000);
});
