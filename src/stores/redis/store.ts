// The store on Redis: the checks of all requests of one turn of the event loop go out as one script call, in a cluster
// as one for each slot. A call takes the time from its server and judges each request's checks atomically.
import type { Decision } from "../../core/decision.ts";
import type { Check, CheckMode, Store } from "../../core/ports.ts";
import { askParts } from "./ask-parts.ts";
import { type CallMode, late, type Pending } from "./batch.ts";
import { obstacleOf } from "./obstacle.ts";
import { partsBySlot } from "./parts.ts";
import { asStoreError, notConnected, Sender } from "./sender.ts";
import type { Topology } from "./topology.ts";

/** Checks of one script call at the most; a request with more goes alone. */
const MAX_CHECKS_PER_CALL = 128;

export interface RedisStoreOptions {
  /** Longest time from a request's arrival to its answer, milliseconds; a call's own budget cuts it further. */
  readonly deadlineMs: number;
  /** Microseconds since 1970 to use instead of the server's clock; only tests give it. */
  readonly nowUs?: () => number;
}

export class RedisStore implements Store {
  readonly #topology: Topology;
  readonly #options: RedisStoreOptions;
  readonly #sender: Sender;
  /** What waits for the end of the turn, by slot. */
  #queues = new Map<number, Pending[]>();

  constructor(topology: Topology, options: RedisStoreOptions) {
    this.#topology = topology;
    this.#options = options;
    this.#sender = new Sender(topology, options.nowUs);
  }

  evaluate(
    checks: readonly Check[],
    mode: CheckMode,
    decisions: readonly Decision[],
    budgetMs: number,
  ): undefined | Promise<void> {
    if (checks.length === 0) return undefined;
    const { state, slotOf } = this.#topology;
    if (state.kind !== "ready") return Promise.reject(notConnected(state));
    const deadlineMs = performance.now() + Math.min(budgetMs, this.#options.deadlineMs);
    if (slotOf === undefined) return this.#enqueue(0, checks, mode, decisions, deadlineMs);
    return askParts(partsBySlot(checks, decisions, slotOf), mode, (part, partMode) =>
      this.#enqueue(part.slot, part.checks, partMode, part.decisions, deadlineMs),
    );
  }

  reset(key: string): Promise<void> {
    const { state } = this.#topology;
    if (state.kind !== "ready") return Promise.reject(notConnected(state));
    const { deadlineMs } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(late()), deadlineMs);
      this.#delete(key, performance.now() + deadlineMs)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  close(): undefined {
    this.#topology.close();
  }

  #enqueue(
    slot: number,
    checks: readonly Check[],
    mode: CallMode,
    decisions: readonly Decision[],
    deadlineMs: number,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#queues.size === 0) setImmediate(() => this.#flush());
      const pending: Pending = { checks, mode, decisions, deadlineMs, resolve, reject };
      const queue = this.#queues.get(slot);
      if (queue === undefined) this.#queues.set(slot, [pending]);
      else queue.push(pending);
    });
  }

  #flush(): void {
    const queues = this.#queues;
    this.#queues = new Map();
    for (const [slot, queue] of queues) this.#sendAll(queue, slot);
  }

  #sendAll(queue: readonly Pending[], slot: number): void {
    let batch: Pending[] = [];
    let checks = 0;
    for (const request of queue) {
      if (checks > 0 && checks + request.checks.length > MAX_CHECKS_PER_CALL) {
        this.#sender.send(batch, slot);
        batch = [];
        checks = 0;
      }
      batch.push(request);
      checks += request.checks.length;
    }
    this.#sender.send(batch, slot);
  }

  async #delete(key: string, untilMs: number): Promise<void> {
    const slot = this.#topology.slotOf?.(key) ?? 0;
    const server = this.#topology.serverOf(slot);
    if (server?.state.kind !== "ready") throw notConnected(server?.state);
    try {
      await server.delete(key, false);
    } catch (error) {
      const obstacle = obstacleOf(error, server.host);
      const passable = obstacle?.kind === "moved" || obstacle?.kind === "ask" || obstacle?.kind === "standby";
      const other = passable ? await this.#topology.wayAround(obstacle, slot, server, untilMs) : undefined;
      if (other === undefined) throw asStoreError(error);
      await other.delete(key, obstacle?.kind === "ask").catch((reason: unknown) => {
        throw asStoreError(reason);
      });
    }
  }
}
