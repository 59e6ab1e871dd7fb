// The store without Redis: counters of this process alone, answered at once.
import { copyState } from "../../core/algorithms/registry.ts";
import { type Decision, newDecision } from "../../core/decision.ts";
import { judgeTogether } from "../../core/judge-together.ts";
import type { Check, CheckMode, Clock, Store } from "../../core/ports.ts";
import { type Counter, CounterMap } from "./expiry.ts";

/** Counters live this much longer than they must: expiry only collects garbage. */
const SLACK_US = 1_000_000;
/** Counters looked at for each one that is touched, and in each turn of the timer of `MemoryStore.sweepEvery`. */
const SWEPT_PER_CHECK = 2;
const SWEPT_PER_TURN = 10_000;

export class MemoryStore implements Store {
  readonly #counters: CounterMap;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;

  /** @param options.maxCounters how many counters are held at the most; beyond, those nearest to expiry make room */
  constructor(options: { readonly clock: Clock; readonly maxCounters: number }) {
    this.#clock = options.clock;
    this.#counters = new CounterMap(options.maxCounters);
  }

  /** How many counters are held. */
  get size(): number {
    return this.#counters.size;
  }

  /** How many live counters had to make room so far. */
  get evicted(): number {
    return this.#counters.evicted;
  }

  /** Frees the memory of expired counters also when no request comes. Does not keep the process alive. */
  sweepEvery(periodMs: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#counters.sweep(SWEPT_PER_TURN, this.#clock.nowUs()), periodMs);
    this.#timer.unref();
  }

  evaluate(checks: readonly Check[], mode: CheckMode, decisions: readonly Decision[]): undefined {
    const nowUs = this.#clock.nowUs();
    const fits = (check: Check, hits: number): boolean => {
      const scratch = newDecision();
      this.#look(check, hits, nowUs, scratch);
      return scratch.allowed;
    };
    // What an atomic request gives back takes place in any case and first, so that the rest is judged with it.
    const refundsFirst = mode.startsWith("atomic");
    for (const [index, check] of checks.entries()) {
      if (refundsFirst && check.hits < 0) this.#charge(check, check.hits, nowUs, decisionAt(decisions, index));
    }
    for (const [index, { hits, writes }] of judgeTogether(checks, mode, fits).entries()) {
      const check = checks[index];
      if (check === undefined || (refundsFirst && hits < 0)) continue;
      if (writes) this.#charge(check, hits, nowUs, decisionAt(decisions, index));
      else this.#look(check, hits, nowUs, decisionAt(decisions, index));
    }
  }

  reset(key: string): undefined {
    this.#counters.delete(key);
  }

  close(): undefined {
    clearInterval(this.#timer);
  }

  #charge(check: Check, hits: number, nowUs: number, decision: Decision): void {
    this.#counters.sweep(SWEPT_PER_CHECK, nowUs);
    const { handler, params } = check.limit;
    const known = this.#counters.get(check.key);
    const counter: Counter = known ?? { handler, state: handler.init(), expiresUs: 0 };
    if (!handler.step(counter.state, params, nowUs, hits, decision)) return;
    counter.expiresUs = nowUs + handler.ttlUs(counter.state, params, nowUs) + SLACK_US;
    if (known === undefined) this.#counters.add(check.key, counter, nowUs);
  }

  /** Answers as if the hits were charged, and changes nothing. */
  #look(check: Check, hits: number, nowUs: number, decision: Decision): void {
    const { handler, params } = check.limit;
    const known = this.#counters.get(check.key);
    const state = known === undefined ? handler.init() : copyState(handler, known.state);
    handler.step(state, params, nowUs, hits, decision);
  }
}

function decisionAt(decisions: readonly Decision[], index: number): Decision {
  const decision = decisions[index];
  if (decision === undefined) throw new Error("a decision is missing for a check");
  return decision;
}
