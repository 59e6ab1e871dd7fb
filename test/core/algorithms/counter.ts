// One counter of an algorithm, without a store: what the property tests play with.
import type { AlgorithmState } from "../../../src/core/algorithms/algorithm.ts";
import { copyState } from "../../../src/core/algorithms/registry.ts";
import { type Decision, newDecision } from "../../../src/core/decision.ts";
import type { Limit } from "../../../src/core/limit.ts";

export class Counter {
  readonly #limit: Limit;
  readonly #state: AlgorithmState;

  constructor(limit: Limit, state: AlgorithmState = limit.handler.init()) {
    this.#limit = limit;
    this.#state = state;
  }

  ask(nowUs: number, hits: number): Decision {
    const decision = newDecision();
    const before = this.text();
    const changed = this.#limit.handler.step(this.#state, this.#limit.params, nowUs, hits, decision);
    if (!changed && this.text() !== before) throw new Error("the state changed, and step said that it did not");
    for (const [name, value] of Object.entries(decision)) {
      if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0))) {
        throw new Error(`${name} is ${Object.is(value, -0) ? "-0" : value}`);
      }
    }
    return decision;
  }

  /** A counter in the same state, under another limit if one is given. */
  copy(limit = this.#limit): Counter {
    return new Counter(limit, copyState(this.#limit.handler, this.#state));
  }

  /** Microseconds after which the counter may be dropped. */
  ttlUs(nowUs: number): number {
    return this.#limit.handler.ttlUs(this.#state, this.#limit.params, nowUs);
  }

  /** The state, to compare. */
  text(): string {
    return JSON.stringify(this.#state);
  }
}
