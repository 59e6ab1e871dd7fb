// A RedisStore connected to a server that a test started.
import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import type { Clock } from "../../src/core/ports.ts";
import { createClient } from "../../src/stores/redis/connect.ts";
import { type ConnectionState, RedisConnection } from "../../src/stores/redis/connection.ts";
import { OneServer } from "../../src/stores/redis/one-server.ts";
import { readScript } from "../../src/stores/redis/scripts.ts";
import { RedisStore } from "../../src/stores/redis/store.ts";

export interface OpenRedisStore {
  readonly store: RedisStore;
  /** The store's own connection, for tests that break it. */
  readonly client: Redis;
  readonly connection: RedisConnection;
  /** Every state of the connection so far, in order. */
  readonly states: readonly ConnectionState[];
  readonly warnings: readonly string[];
  /** Resolves once the connection is in a state that `matches`, at once if it is. */
  until(matches: (state: ConnectionState) => boolean): Promise<ConnectionState>;
}

export interface RedisStoreSetup {
  /** The server's own time when absent. */
  readonly clock?: Clock;
  /** Milliseconds. */
  readonly deadlineMs?: number;
  readonly connectTimeoutMs?: number;
  /** See `RedisTarget.auth`. */
  readonly auth?: string;
}

/** Starts to connect and does not wait. */
export function openRedisStore(port: number, setup: RedisStoreSetup = {}): OpenRedisStore {
  const connectTimeoutMs = setup.connectTimeoutMs ?? 5_000;
  const client = createClient({
    type: "single",
    url: `127.0.0.1:${port}`,
    auth: setup.auth ?? "",
    sentinelAuth: "",
    tls: undefined,
    connectTimeoutMs,
    retryMinMs: 10,
    retryMaxMs: 50,
  });
  const states: ConnectionState[] = [];
  const warnings: string[] = [];
  const listeners = new Set<(state: ConnectionState) => void>();
  const connection = new RedisConnection(client, readScript(), connectTimeoutMs, {
    onState: (state) => {
      states.push(state);
      for (const listener of listeners) listener(state);
    },
    onWarning: (message) => warnings.push(message),
  });
  const { clock } = setup;
  const store = new RedisStore(new OneServer(connection), {
    deadlineMs: setup.deadlineMs ?? 10_000,
    ...(clock === undefined ? {} : { nowUs: () => clock.nowUs() }),
  });
  const until = (matches: (state: ConnectionState) => boolean): Promise<ConnectionState> =>
    new Promise((resolve) => {
      const listener = (state: ConnectionState): void => {
        if (!matches(state)) return;
        listeners.delete(listener);
        resolve(state);
      };
      listeners.add(listener);
      listener(connection.state);
    });
  connection.open();
  return { store, client, connection, states, warnings, until };
}

/** A store that is ready to be asked. */
export async function connectRedisStore(port: number, setup: RedisStoreSetup = {}): Promise<OpenRedisStore> {
  const opened = openRedisStore(port, setup);
  await opened.until(({ kind }) => kind === "ready");
  return opened;
}

/** Keeps tests on one server apart. */
export function randomPrefix(): string {
  return `${randomBytes(6).toString("hex")}:`;
}
