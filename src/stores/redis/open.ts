// Puts the parts of the Redis store together, as the type of Redis wants it.
import type { Redis } from "ioredis";
import { clusterSeeds } from "./address.ts";
import { Cluster } from "./cluster.ts";
import { createClient, RECONNECT_MS, type RedisTarget } from "./connect.ts";
import { type ConnectionEvents, RedisConnection } from "./connection.ts";
import { OneServer } from "./one-server.ts";
import { readScript } from "./scripts.ts";
import { createSentinelClient, watchSentinels } from "./sentinel.ts";
import { RedisStore, type RedisStoreOptions } from "./store.ts";
import type { Topology } from "./topology.ts";

/**
 * Starts to connect and returns at once; the state tells when calls can be answered.
 *
 * @throws Error with a message for the operator when the address cannot be read
 */
export function openRedisStore(target: RedisTarget, options: RedisStoreOptions, events: ConnectionEvents): RedisStore {
  return new RedisStore(openTopology(target, events), options);
}

export function openTopology(target: RedisTarget, events: ConnectionEvents): Topology {
  switch (target.type) {
    case "single":
      return new OneServer(openServer(createClient(target), target, events));
    case "sentinel":
      return openMaster(target, events);
    case "cluster":
      return openCluster(target, events);
  }
}

function openServer(client: Redis, { connectTimeoutMs }: RedisTarget, events: ConnectionEvents): RedisConnection {
  const connection = new RedisConnection(client, readScript(), connectTimeoutMs, events);
  connection.open();
  return connection;
}

function openMaster(target: RedisTarget, events: ConnectionEvents): OneServer {
  const connection = openServer(createSentinelClient(target), target, events);
  const stop = watchSentinels(target, () => connection.renew("the sentinels have named another master"));
  return new OneServer(connection, stop);
}

function openCluster(target: RedisTarget, events: ConnectionEvents): Cluster {
  const script = readScript();
  // A node that the cluster tells of is, or will soon be, there: it is tried as one that was there before.
  const [retryMinMs, retryMaxMs] = RECONNECT_MS;
  const connect = (url: string, named: boolean, nodeEvents: ConnectionEvents): RedisConnection => {
    const client = createClient({ ...target, url, ...(named ? { retryMinMs, retryMaxMs } : {}) });
    return new RedisConnection(client, script, target.connectTimeoutMs, nodeEvents);
  };
  const cluster = new Cluster(clusterSeeds(target.url), connect, events);
  cluster.open();
  return cluster;
}
