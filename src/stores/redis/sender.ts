// Sends script calls. A call that surely did not run is sent again, once for each reason and within the deadlines of its
// requests; a call whose outcome is unknown never is, because its hits would count twice.
import { StoreError } from "../../core/errors.ts";
import { askParts } from "./ask-parts.ts";
import { callArguments, DeadlineTimer, type Pending, readReply } from "./batch.ts";
import type { CallForm, ConnectionState, RedisConnection } from "./connection.ts";
import { type Obstacle, obstacleOf } from "./obstacle.ts";
import type { Part } from "./parts.ts";
import type { Passable, Topology } from "./topology.ts";

/** How a call goes out, and what it met on the way so far. */
interface Way extends CallForm {
  /** `undefined` for the server that holds the slot. */
  readonly server: RedisConnection | undefined;
  readonly met: readonly Obstacle["kind"][];
}

const DIRECT: Way = { by: "name", asking: false, server: undefined, met: [] };
/** For a single check, which is never between two nodes. */
const ALONE: Way = { ...DIRECT, met: ["split"] };

export class Sender {
  readonly #topology: Topology;
  readonly #nowUs: (() => number) | undefined;

  /** @param nowUs see `RedisStoreOptions` */
  constructor(topology: Topology, nowUs: (() => number) | undefined) {
    this.#topology = topology;
    this.#nowUs = nowUs;
  }

  /** Sends the requests, all of one slot, whose time is not over; the others are not sent, so not charged. */
  send(requests: readonly Pending[], slot: number, way = DIRECT): void {
    const nowMs = performance.now();
    const batch: Pending[] = [];
    for (const request of requests) {
      if (request.deadlineMs > nowMs) batch.push(request);
      else
        request.reject(new StoreError("the time for an answer was over before Redis was asked", { transient: true }));
    }
    if (batch.length === 0) return;
    const server = way.server ?? this.#topology.serverOf(slot);
    if (server?.state.kind !== "ready") {
      rejectAll(batch, notConnected(server?.state));
      return;
    }
    const { keys, args } = callArguments(batch, this.#nowUs?.());
    const timer = new DeadlineTimer(batch, nowMs);
    server.call(keys, args, way).then(
      (reply) => {
        timer.stop();
        readReply(batch, reply);
      },
      (error: unknown) => {
        timer.stop();
        this.#sendAgain(batch, slot, { ...way, server }, server, error);
      },
    );
  }

  #sendAgain(batch: readonly Pending[], slot: number, way: Way, server: RedisConnection, error: unknown): void {
    const obstacle = obstacleOf(error, server.host);
    if (obstacle === undefined || way.met.includes(obstacle.kind)) {
      rejectAll(batch, asStoreError(error));
      return;
    }
    const onward: Way = { ...way, met: [...way.met, obstacle.kind] };
    switch (obstacle.kind) {
      case "script":
        this.send(batch, slot, { ...onward, by: "text" });
        break;
      case "split":
        for (const request of batch) this.#sendApart(request, slot);
        break;
      default:
        this.#sendAround(batch, slot, onward, server, obstacle, error);
    }
  }

  /** Sends each check of a request as a call of its own. */
  #sendApart(request: Pending, slot: number): void {
    const { checks, decisions, mode, deadlineMs } = request;
    const parts = checks.map(
      (check, index): Part => ({ slot, checks: [check], decisions: decisions.slice(index, index + 1) }),
    );
    askParts(parts, mode, (part, partMode) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.send(
        [{ checks: part.checks, decisions: part.decisions, mode: partMode, deadlineMs, resolve, reject }],
        slot,
        ALONE,
      );
      return promise;
    }).then(request.resolve, request.reject);
  }

  #sendAround(
    batch: readonly Pending[],
    slot: number,
    way: Way,
    from: RedisConnection,
    obstacle: Passable,
    error: unknown,
  ): void {
    const timer = new DeadlineTimer(batch, performance.now());
    const untilMs = Math.max(...batch.map(({ deadlineMs }) => deadlineMs));
    this.#topology.wayAround(obstacle, slot, from, untilMs).then(
      (server) => {
        timer.stop();
        if (server !== undefined) this.send(batch, slot, { ...way, server, asking: obstacle.kind === "ask" });
        else rejectAll(batch, obstacle.kind === "standby" ? asStoreError(error) : clusterNode(error));
      },
      (reason: unknown) => {
        timer.stop();
        rejectAll(batch, asStoreError(reason));
      },
    );
  }
}

function rejectAll(batch: readonly Pending[], error: StoreError): void {
  for (const request of batch) request.reject(error);
}

/** Only a store that takes a node of a cluster for a single server finds no way to another. */
function clusterNode(cause: unknown): StoreError {
  return new StoreError("Redis is a node of a cluster: set REDIS_TYPE=CLUSTER", { transient: false, cause });
}

/** @param state of the server; `undefined` when there is none for a slot */
export function notConnected(state: ConnectionState | undefined): StoreError {
  if (state === undefined) return new StoreError("no node of the Redis cluster holds the slot", { transient: true });
  const reason = state.kind === "connecting" ? state.reason : "weir is stopping";
  return new StoreError(`Redis is not connected: ${reason}`, { transient: true });
}

export function asStoreError(error: unknown): StoreError {
  const message = error instanceof Error ? error.message : String(error);
  return new StoreError(`Redis failed: ${message}`, { transient: true, cause: error });
}
