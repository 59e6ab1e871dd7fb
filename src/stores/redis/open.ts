// Puts the parts of the Redis store together.
import { createClient, type RedisTarget } from "./connect.ts";
import { type ConnectionEvents, RedisConnection } from "./connection.ts";
import { readScript } from "./scripts.ts";
import { RedisStore, type RedisStoreOptions } from "./store.ts";

/** Starts to connect and returns at once; the state tells when calls can be answered. */
export function openRedisStore(target: RedisTarget, options: RedisStoreOptions, events: ConnectionEvents): RedisStore {
  const connection = new RedisConnection(createClient(target), readScript(), target.connectTimeoutMs, events);
  connection.open();
  return new RedisStore(connection, options);
}
