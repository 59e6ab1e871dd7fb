// The store on Redis: the checks of all requests of one turn of the event loop go out as one script call, which takes
// the time from Redis and judges each request's checks atomically.
import type { Decision } from "../../core/decision.ts";
import { StoreError } from "../../core/errors.ts";
import type { Check, CheckMode, Store } from "../../core/ports.ts";
import { isScriptMissing, type RedisConnection } from "./connection.ts";

/** Checks of one script call at the most; a request with more goes alone. */
const MAX_CHECKS_PER_CALL = 128;
/** Integers per check in the script's reply, see lua/batch.lua. */
const REPLY_FIELDS = 6;

/** Modes as lua/batch.lua knows them. */
const MODES: Readonly<Record<CheckMode, number>> = {
  each: 0,
  spare: 1,
  spare_refused: 2,
  atomic: 3,
  atomic_refused: 4,
  atomic_quota_passes: 5,
};

/** A request that waits for its answer. */
interface Pending {
  readonly checks: readonly Check[];
  readonly mode: CheckMode;
  readonly decisions: readonly Decision[];
  /** On the monotonic clock of `performance.now()`, milliseconds. */
  readonly deadlineMs: number;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

export interface RedisStoreOptions {
  /** Longest time from a request's arrival to its answer, milliseconds; a call's own budget cuts it further. */
  readonly deadlineMs: number;
  /** Microseconds since 1970 to use instead of the server's clock; only tests give it. */
  readonly nowUs?: () => number;
}

export class RedisStore implements Store {
  readonly #connection: RedisConnection;
  readonly #options: RedisStoreOptions;
  #queue: Pending[] = [];

  constructor(connection: RedisConnection, options: RedisStoreOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  evaluate(
    checks: readonly Check[],
    mode: CheckMode,
    decisions: readonly Decision[],
    budgetMs: number,
  ): undefined | Promise<void> {
    if (checks.length === 0) return undefined;
    const { state } = this.#connection;
    if (state.kind !== "ready") return Promise.reject(notConnected(state));
    const deadlineMs = performance.now() + Math.min(budgetMs, this.#options.deadlineMs);
    return new Promise((resolve, reject) => {
      if (this.#queue.length === 0) setImmediate(() => this.#flush());
      this.#queue.push({ checks, mode, decisions, deadlineMs, resolve, reject });
    });
  }

  reset(key: string): Promise<void> {
    const { state } = this.#connection;
    if (state.kind !== "ready") return Promise.reject(notConnected(state));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(late()), this.#options.deadlineMs);
      this.#connection
        .delete(key)
        .then(resolve, (error: unknown) => reject(asStoreError(error)))
        .finally(() => clearTimeout(timer));
    });
  }

  close(): undefined {
    this.#connection.close();
  }

  #flush(): void {
    const waiting = this.#queue;
    this.#queue = [];
    let batch: Pending[] = [];
    let checks = 0;
    for (const request of waiting) {
      if (checks > 0 && checks + request.checks.length > MAX_CHECKS_PER_CALL) {
        this.#send(batch, "name");
        batch = [];
        checks = 0;
      }
      batch.push(request);
      checks += request.checks.length;
    }
    this.#send(batch, "name");
  }

  /** Sends the requests whose time is not over; the others are not sent, so not charged. */
  #send(requests: readonly Pending[], by: "name" | "text"): void {
    const nowMs = performance.now();
    const batch: Pending[] = [];
    const keys: string[] = [];
    const args: (string | number)[] = [this.#options.nowUs?.() ?? ""];
    for (const request of requests) {
      if (request.deadlineMs <= nowMs) {
        request.reject(new StoreError("the time for an answer was over before Redis was asked", { transient: true }));
        continue;
      }
      batch.push(request);
      args.push(request.checks.length, MODES[request.mode]);
      if (MODES[request.mode] >= MODES.atomic) for (const { role } of request.checks) args.push(role ?? 0);
      for (const { key, limit, hits } of request.checks) {
        keys.push(key);
        args.push(limit.handler.name, hits, ...limit.params);
      }
    }
    if (batch.length === 0) return;
    const timer = new DeadlineTimer(batch, nowMs);
    this.#connection.call(keys, args, by).then(
      (reply) => {
        timer.stop();
        readReply(batch, reply);
      },
      (error: unknown) => {
        timer.stop();
        if (by === "name" && isScriptMissing(error)) this.#send(batch, "text");
        else for (const request of batch) request.reject(asStoreError(error));
      },
    );
  }
}

/** Fails each request of a batch at its deadline. What Redis did with it is then unknown, so it is never sent again. */
class DeadlineTimer {
  readonly #batch: readonly Pending[];
  #timer: NodeJS.Timeout | undefined;

  /** @param nowMs a time at which no deadline of the batch had passed */
  constructor(batch: readonly Pending[], nowMs: number) {
    this.#batch = batch;
    this.#arm(nowMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(nowMs: number): void {
    let next = Infinity;
    for (const { deadlineMs } of this.#batch) if (deadlineMs > nowMs && deadlineMs < next) next = deadlineMs;
    if (next < Infinity) this.#timer = setTimeout(() => this.#expire(), Math.ceil(next - nowMs));
  }

  #expire(): void {
    const nowMs = performance.now();
    for (const { deadlineMs, reject } of this.#batch) {
      // Rejecting a second time does nothing.
      if (deadlineMs <= nowMs) reject(late());
    }
    this.#arm(nowMs);
  }
}

function late(): StoreError {
  return new StoreError("Redis did not answer in time", { transient: true });
}

function readReply(batch: readonly Pending[], reply: unknown): void {
  if (!Array.isArray(reply)) {
    for (const request of batch) request.reject(unreadable());
    return;
  }
  let at = 0;
  for (const request of batch) {
    const failure = readDecisions(request, reply, at);
    at += request.checks.length * REPLY_FIELDS;
    if (failure === undefined) request.resolve();
    else request.reject(failure);
  }
}

/** Fills the decisions of one request from its part of the reply, or says why it cannot. */
function readDecisions(request: Pending, reply: readonly unknown[], start: number): StoreError | undefined {
  let at = start;
  for (const [index, check] of request.checks.entries()) {
    const decision = request.decisions[index];
    const [status, allowed, remaining, retryAfterUs, resetAfterUs, delayUs] = reply
      .slice(at, at + REPLY_FIELDS)
      .map(Number);
    at += REPLY_FIELDS;
    if (decision === undefined || delayUs === undefined) return unreadable();
    if (status !== 0) return refusedCheck(check, status);
    decision.allowed = allowed === 1;
    decision.remaining = remaining ?? 0;
    decision.retryAfterUs = retryAfterUs ?? 0;
    decision.resetAfterUs = resetAfterUs ?? 0;
    decision.delayUs = delayUs;
  }
  return undefined;
}

function refusedCheck(check: Check, status: number | undefined): StoreError {
  return status === -1
    ? new StoreError(`the Redis key of a ${check.limit.algorithm} counter holds something else`, { transient: false })
    : new StoreError("Redis refused to write a counter (is its memory full?)", { transient: true });
}

function unreadable(): StoreError {
  return new StoreError("Redis sent a reply that is not the script's", { transient: false });
}

function notConnected(state: RedisConnection["state"]): StoreError {
  const reason = state.kind === "connecting" ? state.reason : "weir is stopping";
  return new StoreError(`Redis is not connected: ${reason}`, { transient: true });
}

function asStoreError(error: unknown): StoreError {
  const message = error instanceof Error ? error.message : String(error);
  return new StoreError(`Redis failed: ${message}`, { transient: true, cause: error });
}
