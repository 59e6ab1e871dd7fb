// A store on a Redis of any type, opened as the process opens it.

import type { RedisTarget } from "../../src/stores/redis/connect.ts";
import type { ConnectionState } from "../../src/stores/redis/connection.ts";
import { openTopology } from "../../src/stores/redis/open.ts";
import { RedisStore } from "../../src/stores/redis/store.ts";
import type { Topology } from "../../src/stores/redis/topology.ts";
import type { RedisStoreSetup } from "./redis-store.ts";

export interface TopologyStore {
  readonly store: RedisStore;
  readonly topology: Topology;
  /** Every state so far, in order. */
  readonly states: readonly ConnectionState[];
  readonly warnings: readonly string[];
  /** Resolves once the topology is in a state that `matches`, at once if it is. */
  until(matches: (state: ConnectionState) => boolean): Promise<ConnectionState>;
}

export interface TopologySetup extends RedisStoreSetup {
  readonly sentinelAuth?: string;
}

/** Starts to connect and does not wait. */
export function openTopologyStore(type: RedisTarget["type"], url: string, setup: TopologySetup = {}): TopologyStore {
  const states: ConnectionState[] = [];
  const warnings: string[] = [];
  const listeners = new Set<(state: ConnectionState) => void>();
  const target: RedisTarget = {
    type,
    url,
    auth: setup.auth ?? "",
    sentinelAuth: setup.sentinelAuth ?? "",
    tls: undefined,
    connectTimeoutMs: setup.connectTimeoutMs ?? 5_000,
    retryMinMs: 10,
    retryMaxMs: 50,
  };
  const topology = openTopology(target, {
    onState: (state) => {
      states.push(state);
      for (const listener of listeners) listener(state);
    },
    onWarning: (message) => warnings.push(message),
  });
  const { clock } = setup;
  const store = new RedisStore(topology, {
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
      listener(topology.state);
    });
  return { store, topology, states, warnings, until };
}

/** A store that is ready to be asked. */
export async function connectTopologyStore(
  type: RedisTarget["type"],
  url: string,
  setup: TopologySetup = {},
): Promise<TopologyStore> {
  const opened = openTopologyStore(type, url, setup);
  await opened.until(({ kind }) => kind === "ready");
  return opened;
}
