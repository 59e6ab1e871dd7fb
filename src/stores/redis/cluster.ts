// A Redis Cluster: one connection to each master, and the map of slots that says which one to ask. The map is looked at
// every second, at once when something is wrong with it, and corrected by every MOVED.
//
// ioredis has a client for clusters. It queues calls for nodes that are not connected, past their deadlines, and sends
// them again for reasons of its own, so only its connections are used here.
import { isDeepStrictEqual } from "node:util";
import keySlot from "cluster-key-slot";
import { addressText, type HostAndPort } from "./address.ts";
import type { ConnectionEvents, ConnectionState, RedisConnection } from "./connection.ts";
import { readSlots, SLOTS, type SlotRange } from "./slot-map.ts";
import type { Passable, Topology } from "./topology.ts";

/** How often the map is looked at while all is well. Milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** How often it is looked at while a master is missing, and the least time between two looks. Milliseconds. */
const LOOK_AGAIN_MS = 200;
/** A node that does not show its map for so long is left for another. Milliseconds. */
const LOOK_TIMEOUT_MS = 1_000;
/** A node without slots is kept for so long after it was last named by a redirection. Milliseconds. */
const KEEP_NAMED_MS = 10_000;

const NOT_YET = "not connected yet";

/** Makes a connection to a node that is not opened yet. `named` says whether the cluster itself told of the node. */
export type ConnectNode = (address: string, named: boolean, events: ConnectionEvents) => RedisConnection;

export class Cluster implements Topology {
  readonly slotOf = keySlot;
  readonly #seeds: readonly HostAndPort[];
  readonly #connect: ConnectNode;
  readonly #events: ConnectionEvents;
  readonly #nodes = new Map<string, RedisConnection>();
  /** When a redirection named a node last, on the clock of `performance.now()`. */
  readonly #named = new Map<string, number>();
  /** Addresses of the nodes that hold slots; empty until the map was read. */
  #masters: ReadonlySet<string> = new Set();
  #owners: (RedisConnection | undefined)[] = [];
  #state: ConnectionState = { kind: "connecting", reason: NOT_YET };
  /** Why there is no map, while there is none. */
  #noMap: string | undefined;
  #looking = false;
  #looks = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #nextLook: NodeJS.Timeout | undefined;
  #nextLookMs = Number.POSITIVE_INFINITY;

  constructor(seeds: readonly HostAndPort[], connect: ConnectNode, events: ConnectionEvents) {
    this.#seeds = seeds;
    this.#connect = connect;
    this.#events = events;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Starts to connect; success and failure show in the state. */
  open(): void {
    for (const seed of this.#seeds) this.#node(seed, false);
  }

  serverOf(slot: number): RedisConnection | undefined {
    return this.#owners[slot];
  }

  async wayAround(
    obstacle: Passable,
    slot: number,
    from: RedisConnection,
    untilMs: number,
  ): Promise<RedisConnection | undefined> {
    if (this.#state.kind === "closed") return undefined;
    if (obstacle.kind === "standby") {
      if (!from.renew(obstacle.reason)) return undefined;
      await from.whenReady(untilMs);
      return this.#owners[slot];
    }
    const node = this.#node(obstacle.to, true);
    this.#named.set(addressText(obstacle.to), performance.now());
    if (obstacle.kind === "moved") {
      this.#owners[slot] = node;
      this.#lookIn(0);
    }
    await node.whenReady(untilMs);
    return node;
  }

  close(): void {
    clearTimeout(this.#nextLook);
    this.#set({ kind: "closed" });
    for (const node of this.#nodes.values()) node.close();
    this.#nodes.clear();
  }

  /** The connection to a node, made now if there is none. */
  #node(where: HostAndPort, named: boolean): RedisConnection {
    const address = addressText(where);
    const found = this.#nodes.get(address);
    if (found !== undefined) return found;
    let reported = false;
    const node = this.#connect(address, named, {
      onState: (state) => {
        if (this.#nodes.get(address) !== node) return;
        // Once for each time that it goes, not for every attempt.
        if (state.kind === "connecting" && !reported) this.#events.onWarning(`Redis at ${address}: ${state.reason}`);
        reported = state.kind === "connecting";
        this.#lookIn(0);
        this.#sum();
      },
      onWarning: (message) => this.#events.onWarning(`Redis at ${address}: ${message}`),
    });
    this.#nodes.set(address, node);
    node.open();
    return node;
  }

  /** Looks at the map in so many milliseconds, or earlier where that was planned. */
  #lookIn(delayMs: number): void {
    if (this.#state.kind === "closed") return;
    const nowMs = performance.now();
    const dueMs = Math.max(nowMs + delayMs, this.#lookedMs + LOOK_AGAIN_MS);
    if (dueMs >= this.#nextLookMs) return;
    clearTimeout(this.#nextLook);
    this.#nextLookMs = dueMs;
    this.#nextLook = setTimeout(() => {
      this.#nextLookMs = Number.POSITIVE_INFINITY;
      void this.#lookNow();
    }, dueMs - nowMs);
  }

  async #lookNow(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const ready = [...this.#nodes.values()].filter(isReady);
    this.#looks += 1;
    const node = ready[this.#looks % ready.length];
    try {
      if (node === undefined) this.open();
      else this.#adopt(readSlots(await within(LOOK_TIMEOUT_MS, node.clusterSlots()), node.host));
    } catch (error) {
      this.#noMap = error instanceof Error ? error.message : String(error);
    }
    this.#looking = false;
    this.#lookedMs = performance.now();
    this.#sum();
    const allReady = [...this.#masters].every((address) => isReady(this.#nodes.get(address)));
    this.#lookIn(allReady && this.#masters.size > 0 ? LOOK_EVERY_MS : LOOK_AGAIN_MS);
  }

  #adopt(ranges: readonly SlotRange[]): void {
    if (this.#state.kind === "closed") return;
    if (ranges.length === 0) throw new Error("no node of the cluster holds a slot");
    const owners: RedisConnection[] = new Array(SLOTS);
    const masters = new Set<string>();
    for (const { first, last, master } of ranges) {
      masters.add(addressText(master));
      owners.fill(this.#node(master, true), first, last + 1);
    }
    this.#owners = owners;
    this.#masters = masters;
    // Without any master the others are all there is to ask.
    if ([...masters].some((address) => isReady(this.#nodes.get(address)))) this.#dropOthers();
  }

  #dropOthers(): void {
    const sinceMs = performance.now() - KEEP_NAMED_MS;
    for (const [address, node] of this.#nodes) {
      if (this.#masters.has(address) || (this.#named.get(address) ?? sinceMs) > sinceMs) continue;
      this.#nodes.delete(address);
      this.#named.delete(address);
      node.retire();
    }
  }

  /** Sums the states of the nodes up. */
  #sum(): void {
    const masters = [...this.#masters].flatMap((address) => this.#nodes.get(address) ?? []);
    const ready = masters.filter(isReady);
    const [first] = ready;
    // At the start all are waited for, so that no request meets a connection that is only a moment away.
    const starting = this.#state.kind === "connecting" && masters.some(({ settled }) => !settled);
    if (first?.state.kind === "ready" && !starting) {
      const count = ready.length === masters.length ? masters.length : `${ready.length} of ${masters.length}`;
      this.#set({ kind: "ready", server: `${first.state.server}, a cluster with ${count} masters` });
    } else {
      this.#set({ kind: "connecting", reason: this.#whyNotReady() });
    }
  }

  #whyNotReady(): string {
    for (const [address, { state, settled }] of this.#nodes) {
      if (settled && state.kind === "connecting") return `${address}: ${state.reason}`;
    }
    return this.#noMap ?? NOT_YET;
  }

  #set(state: ConnectionState): void {
    if (this.#state.kind === "closed" || isDeepStrictEqual(this.#state, state)) return;
    this.#state = state;
    this.#events.onState(state);
  }
}

function isReady(node: RedisConnection | undefined): boolean {
  return node?.state.kind === "ready";
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`a node did not show its map of slots within ${ms} ms`)), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
