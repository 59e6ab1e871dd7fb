// What the store needs to know of Redis: which keys may share a call, and which server to send it to. There is one
// implementation for one server (also behind sentinels) and one for a cluster.
import type { ConnectionState, RedisConnection } from "./connection.ts";
import type { Obstacle } from "./obstacle.ts";

/** An obstacle that may be gone, or be elsewhere, after a wait. */
export type Passable = Extract<Obstacle, { kind: "standby" | "moved" | "ask" }>;

export interface Topology {
  /** Whether requests can be taken at all. */
  readonly state: ConnectionState;
  /** The slot of a key: keys of one slot may share a call. `undefined` where all keys may, as if they had slot 0. */
  readonly slotOf: ((key: string) => number) | undefined;
  /** The server that holds a slot, whatever its state; `undefined` when none is known. */
  serverOf(slot: number): RedisConnection | undefined;
  /**
   * Finds the server for a call that did not run, and waits until that server can be asked.
   * Resolves with `undefined` when there is no way, or none before `untilMs` on the clock of `performance.now()`.
   */
  wayAround(
    obstacle: Passable,
    slot: number,
    from: RedisConnection,
    untilMs: number,
  ): Promise<RedisConnection | undefined>;
  close(): void;
}
