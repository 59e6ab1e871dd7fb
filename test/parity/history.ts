// Random histories of a store: what comes when, plain enough to be kept in regressions.json.

import { compileLimit } from "../../src/core/algorithms/registry.ts";
import type { AlgorithmName } from "../../src/core/limit-spec.ts";
import type { CheckMode } from "../../src/core/ports.ts";
import { type LimitSketch, limitSpec } from "../support/make-limit.ts";
import { fc } from "../support/property.ts";

export interface History {
  /** Each counter with the limits that its rule has over time. */
  readonly counters: readonly { readonly limits: readonly LimitSketch[] }[];
  readonly steps: readonly Step[];
}

export interface Step {
  readonly move: Move;
  readonly mode: CheckMode;
  readonly checks: readonly {
    /** Indexes, cut to what there is. */
    readonly counter: number;
    readonly limit: number;
    readonly hits: number | RelativeHits;
  }[];
}

/** How the clock moves before a step: by microseconds, or to what the last answer promised and around it. */
export type Move = { readonly by: number } | { readonly to: "retry" | "reset"; readonly plus: number };

/** Hits that depend on the counter: its capacity, or what the last answer said would pass. */
export interface RelativeHits {
  readonly of: "capacity" | "remaining";
  readonly plus: number;
}

const PERIODS_US = [
  1, 7, 1_000, 49_999, 1_000_000, 30_000_000, 60_000_000, 3_600_000_000, 86_400_000_000, 2_592_000_000_000,
];
const RATES = [0, 1, 2, 3, 7, 10, 49, 600, 607, 1_000_000, 999_983, 4_294_967_295];

const periodUs = fc.oneof(
  { arbitrary: fc.constantFrom(...PERIODS_US), weight: 4 },
  { arbitrary: fc.integer({ min: 1, max: 100_000_000 }), weight: 1 },
);
const requestsPerUnit = fc.oneof(
  { arbitrary: fc.constantFrom(...RATES), weight: 2 },
  { arbitrary: fc.integer({ min: 0, max: 100 }), weight: 1 },
);

const maxDelayUs = fc.oneof(
  fc.constantFrom(1, 200_000, 1_000_000, 600_000_000),
  fc.integer({ min: 1, max: 30_000_000 }),
);

/** Limits with one shape of state, as those of one key are: windows and intervals keep their period, others may change all. */
/** Limits of one window that is cut into so many segments. */
const segmented = fc.tuple(periodUs, fc.integer({ min: 1, max: 12 })).chain(([period, segments]) =>
  limitsOf(fc.constant<AlgorithmName>("sliding_window_counter"), fc.constant(period)).map(({ limits }) => ({
    limits: limits.map((sketch) => ({ ...sketch, segments: Math.min(segments, period) })),
  })),
);

/** Limits with one shape of state, as those of one key are: windows keep their period, levels may change all. */
const counter = fc.oneof(
  periodUs.chain((period) => limitsOf(fc.constant<AlgorithmName>("fixed_window"), fc.constant(period))),
  periodUs.chain((period) => limitsOf(fc.constant<AlgorithmName>("sliding_window_log"), fc.constant(period))),
  periodUs.chain((period) => limitsOf(fc.constant<AlgorithmName>("sliding_window_counter"), fc.constant(period))),
  segmented,
  limitsOf(fc.constant<AlgorithmName>("gcra"), periodUs),
  limitsOf(fc.constant<AlgorithmName>("leaky_bucket"), periodUs),
  limitsOf(fc.constant<AlgorithmName>("leaky_bucket"), periodUs, maxDelayUs),
  limitsOf(fc.constant<AlgorithmName>("token_bucket"), periodUs),
  periodUs.chain((period) =>
    limitsOf(fc.constant<AlgorithmName>("token_bucket"), fc.constant(period), undefined, fc.constant(period)),
  ),
);

function limitsOf(
  algorithm: fc.Arbitrary<AlgorithmName>,
  period: fc.Arbitrary<number>,
  delay: fc.Arbitrary<number | undefined> = fc.constant(undefined),
  interval: fc.Arbitrary<number | undefined> = fc.constant(undefined),
): fc.Arbitrary<{ limits: LimitSketch[] }> {
  const limit = fc
    .record({
      algorithm,
      requestsPerUnit,
      periodUs: period,
      burst: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(600, 1_000_000)),
      countDenied: fc.boolean(),
      maxDelayUs: delay,
      refillIntervalUs: interval,
    })
    .filter(isUsable);
  const unlike = fc.array(limit, { minLength: 1, maxLength: 3 });
  // The same rate with another burst, and so perhaps with another tick.
  const sameRate = limit.map((sketch) => [sketch, resized(sketch, 3), resized(sketch, 1_000_000)].filter(isUsable));
  return fc.record({ limits: fc.oneof({ arbitrary: unlike, weight: 3 }, { arbitrary: sameRate, weight: 1 }) });
}

/** The limit with another burst, or another delay. */
function resized(sketch: LimitSketch, size: number): LimitSketch {
  return { ...sketch, burst: size, ...(sketch.maxDelayUs === undefined ? {} : { maxDelayUs: size }) };
}

/** Whether the algorithm accepts the limit and keeps a counter for it. */
function isUsable(sketch: LimitSketch): boolean {
  const compiled = compileLimit(limitSpec(sketch));
  return !("problem" in compiled) && !compiled.never;
}

const move: fc.Arbitrary<Move> = fc.oneof(
  { arbitrary: fc.record({ by: fc.constantFrom(0, 1, 1_000, 999_999, 1_000_000, 60_000_000) }), weight: 3 },
  { arbitrary: fc.record({ by: fc.integer({ min: 0, max: 100_000_000 }) }), weight: 2 },
  { arbitrary: fc.record({ by: fc.integer({ min: 0, max: 10_000_000_000_000 }) }), weight: 1 },
  { arbitrary: fc.record({ by: fc.constantFrom(-1, -999_999, -4_999_999, -5_000_000, -5_000_001) }), weight: 2 },
  { arbitrary: fc.record({ by: fc.integer({ min: -5_000_000, max: -1 }) }), weight: 1 },
  { arbitrary: fc.record({ by: fc.integer({ min: -100_000_000_000, max: -5_000_001 }) }), weight: 1 },
  {
    arbitrary: fc.record({ to: fc.constantFrom("retry", "reset"), plus: fc.integer({ min: -1, max: 1 }) }),
    weight: 5,
  },
);

const hits: fc.Arbitrary<number | RelativeHits> = fc.oneof(
  { arbitrary: fc.constantFrom(0, 1, 1, 1, 2), weight: 4 },
  { arbitrary: fc.integer({ min: 1, max: 30 }), weight: 2 },
  { arbitrary: fc.integer({ min: -30, max: -1 }), weight: 2 },
  { arbitrary: fc.constantFrom(4_294_967_296, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER), weight: 1 },
  {
    arbitrary: fc.record({ of: fc.constantFrom("capacity", "remaining"), plus: fc.integer({ min: -1, max: 1 }) }),
    weight: 3,
  },
);

const step: fc.Arbitrary<Step> = fc.record({
  move,
  mode: fc.constantFrom("each", "spare", "spare_refused"),
  checks: fc.array(fc.record({ counter: fc.nat({ max: 2 }), limit: fc.nat({ max: 2 }), hits }), {
    minLength: 1,
    maxLength: 3,
  }),
});

export const histories: fc.Arbitrary<History> = fc.record({
  counters: fc.array(counter, { minLength: 1, maxLength: 3 }),
  steps: fc.array(step, { minLength: 1, maxLength: 40, size: "max" }),
});
