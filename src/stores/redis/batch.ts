// The requests of one script call: their form on the way out, their decisions on the way back, and the end of each at
// its deadline.
import type { Decision } from "../../core/decision.ts";
import { StoreError } from "../../core/errors.ts";
import type { Check, CheckMode } from "../../core/ports.ts";

/** How the checks of a request go together in a call; `judge` is `each` without charging anything. */
export type CallMode = CheckMode | "judge";

/** Modes as lua/batch.lua knows them. */
const MODES: Readonly<Record<CallMode, number>> = {
  each: 0,
  spare: 1,
  spare_refused: 2,
  atomic: 3,
  atomic_refused: 4,
  atomic_quota_passes: 5,
  judge: 6,
};

/** Modes in which every check says what its refusal means, see `Check.role`. */
const WITH_ROLES: readonly CallMode[] = ["atomic", "atomic_refused", "atomic_quota_passes"];

/** Integers per check in the script's reply, see lua/batch.lua. */
const REPLY_FIELDS = 6;

/** Checks that are judged together and wait for their answer: a request, or the part of it in one slot. */
export interface Pending {
  readonly checks: readonly Check[];
  readonly mode: CallMode;
  readonly decisions: readonly Decision[];
  /** On the monotonic clock of `performance.now()`, milliseconds. */
  readonly deadlineMs: number;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

/** What of a script call depends on its requests. */
export interface CallArguments {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** @param nowUs `undefined` for the server's own time */
export function callArguments(batch: readonly Pending[], nowUs: number | undefined): CallArguments {
  const keys: string[] = [];
  const args: (string | number)[] = [nowUs ?? ""];
  for (const { checks, mode } of batch) {
    args.push(checks.length, MODES[mode]);
    if (WITH_ROLES.includes(mode)) for (const { role } of checks) args.push(role ?? 0);
    for (const { key, limit, hits } of checks) {
      keys.push(key);
      args.push(limit.handler.name, hits, ...limit.params);
    }
  }
  return { keys, args };
}

/** Answers every request of a batch. */
export function readReply(batch: readonly Pending[], reply: unknown): void {
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

/** Fails each request of a batch at its deadline. What Redis did with it is then unknown, so it is never sent again. */
export class DeadlineTimer {
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

export function late(): StoreError {
  return new StoreError("Redis did not answer in time", { transient: true });
}
