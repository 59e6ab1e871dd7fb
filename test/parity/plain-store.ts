// The algorithms in TypeScript with nothing around them: states in a map that never expire. Knows no check modes.
import type { AlgorithmState } from "../../src/core/algorithms/algorithm.ts";
import type { Decision } from "../../src/core/decision.ts";
import type { Check, CheckMode, Clock, Store } from "../../src/core/ports.ts";

export class PlainStore implements Store {
  readonly #states = new Map<string, AlgorithmState>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  evaluate(checks: readonly Check[], _mode: CheckMode, decisions: readonly Decision[]): undefined {
    for (const [index, { key, limit, hits }] of checks.entries()) {
      const decision = decisions[index];
      if (decision === undefined) throw new Error("a check has no decision");
      const state = this.#states.get(key) ?? limit.handler.init();
      if (limit.handler.step(state, limit.params, this.#clock.nowUs(), hits, decision)) this.#states.set(key, state);
    }
  }

  reset(key: string): undefined {
    this.#states.delete(key);
  }

  close(): undefined {
    this.#states.clear();
  }
}
