// The store on Redis: the checks of all requests of one turn of the event loop go out as one script call, which takes
// the time from Redis and judges each request's checks atomically.
import type { Decision } from "../../core/decision.ts";
import { StoreError } from "../../core/errors.ts";
import type { Check, CheckMode, Store } from "../../core/ports.ts";
import type { RedisConnection } from "./connection.ts";

/** Checks of one script call at the most; a request with more goes alone. */
const MAX_CHECKS_PER_CALL = 128;
/** Integers per check in the script's reply, see lua/batch.lua. */
const REPLY_FIELDS = 5;

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

  async reset(key: string): Promise<void> {
    try {
      await this.#connection.delete(key);
    } catch (error) {
      throw asStoreError(error);
    }
  }

  close(): undefined {
    this.#connection.close();
  }

  #flush(): void {
    const waiting = this.#queue;
    this.#queue = [];
    const nowMs = performance.now();
    let batch: Pending[] = [];
    let checks = 0;
    for (const request of waiting) {
      if (request.deadlineMs <= nowMs) {
        // Not sent, so not charged.
        request.reject(
          new StoreError("the time for the answer was over before Redis could be asked", { transient: true }),
        );
        continue;
      }
      if (checks > 0 && checks + request.checks.length > MAX_CHECKS_PER_CALL) {
        this.#send(batch);
        batch = [];
        checks = 0;
      }
      batch.push(request);
      checks += request.checks.length;
    }
    if (batch.length > 0) this.#send(batch);
  }

  #send(batch: readonly Pending[]): void {
    const keys: string[] = [];
    const args: (string | number)[] = [this.#options.nowUs?.() ?? ""];
    for (const { checks, mode } of batch) {
      args.push(checks.length, mode === "spare" ? 1 : 0);
      for (const { key, limit, hits } of checks) {
        keys.push(key);
        args.push(limit.algorithm, hits, ...limit.params);
      }
    }
    const timer = new DeadlineTimer(batch);
    this.#connection.call(keys, args).then(
      (reply) => {
        timer.stop();
        readReply(batch, reply);
      },
      (error: unknown) => {
        timer.stop();
        const failure = asStoreError(error);
        for (const request of batch) request.reject(failure);
      },
    );
  }
}

/** Fails each request of a batch at its deadline. What Redis did with it is then unknown, so it is never sent again. */
class DeadlineTimer {
  readonly #batch: readonly Pending[];
  #timer: NodeJS.Timeout | undefined;

  constructor(batch: readonly Pending[]) {
    this.#batch = batch;
    this.#arm(performance.now());
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
      if (deadlineMs <= nowMs) reject(new StoreError("Redis did not answer in time", { transient: true }));
    }
    this.#arm(nowMs);
  }
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
    const [status, allowed, remaining, retryAfterUs, resetAfterUs] = reply.slice(at, at + REPLY_FIELDS).map(Number);
    at += REPLY_FIELDS;
    if (decision === undefined || resetAfterUs === undefined) return unreadable();
    if (status !== 0) return refusedCheck(check, status);
    decision.allowed = allowed === 1;
    decision.remaining = remaining ?? 0;
    decision.retryAfterUs = retryAfterUs ?? 0;
    decision.resetAfterUs = resetAfterUs;
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
