// A limit with everything computed that depends on the rule alone.
import type { Algorithm } from "./algorithms/algorithm.ts";
import type { LimitSpec, Unit } from "./limit-spec.ts";

/** A compiled limit. Frozen; shared by all requests that hit its rule. */
export interface Limit extends LimitSpec {
  readonly handler: Algorithm;
  /** The shape of the counter's state: the algorithm, and behind a `.` its variant where it has some. In the key. */
  readonly shape: string;
  /** The algorithm's numbers, in the order that `step` and its Lua twin read them. */
  readonly params: readonly number[];
  /** Zero per period, for algorithms with a rate: nothing ever passes and no counter is kept. */
  readonly never: boolean;
  /** How answers state the period: the largest unit that divides it; `undefined` below a second. */
  readonly unit: Unit | undefined;
  /** The period is this many units. */
  readonly unitMultiplier: number;
}
