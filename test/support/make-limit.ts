// Limits for tests, with the defaults that rules have.

import { compileLimit } from "../../src/core/algorithms/registry.ts";
import type { Limit } from "../../src/core/limit.ts";
import type { AlgorithmName, LimitSpec } from "../../src/core/limit-spec.ts";

export const MS = 1_000;
export const SECOND = 1_000_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** What a test says of a limit: how many per period, and what is not the default. */
export interface LimitSketch {
  readonly algorithm: AlgorithmName;
  readonly requestsPerUnit: number;
  readonly periodUs: number;
  /** `requestsPerUnit`, but at least 1, when absent. */
  readonly burst?: number;
  /** `true` for fixed windows and `false` for others when absent. */
  readonly countDenied?: boolean;
  /** Makes a leaky bucket a shaper. */
  readonly maxDelayUs?: number | undefined;
  /** The period, for a token bucket that refills at intervals. */
  readonly refillIntervalUs?: number | undefined;
  /** Cuts the window of a sliding window counter. */
  readonly segments?: number | undefined;
  readonly name?: string;
}

export function limitSpec(sketch: LimitSketch): LimitSpec {
  return {
    burst: Math.max(1, sketch.requestsPerUnit),
    countDenied: sketch.algorithm === "fixed_window",
    name: "",
    ...sketch,
  };
}

/** @throws Error when the algorithm cannot enforce the limit */
export function makeLimit(sketch: LimitSketch): Limit {
  const limit = compileLimit(limitSpec(sketch));
  if ("problem" in limit) throw new Error(limit.problem);
  return limit;
}
