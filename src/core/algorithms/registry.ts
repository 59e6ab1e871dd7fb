// Name to algorithm, and from what a rule says to a compiled limit.
import type { Limit } from "../limit.ts";
import { type AlgorithmName, type LimitSpec, largestUnit } from "../limit-spec.ts";
import type { Algorithm, AlgorithmState } from "./algorithm.ts";
import { fixedWindow } from "./fixed-window.ts";
import { gcra } from "./gcra.ts";
import { leakyBucket } from "./leaky-bucket.ts";
import { leakyBucketShaper } from "./leaky-bucket-shaper.ts";
import { slidingCounter } from "./sliding-counter.ts";
import { slidingCounterSegments } from "./sliding-counter-segments.ts";
import { slidingLog } from "./sliding-log.ts";
import { tokenBucket } from "./token-bucket.ts";
import { tokenBucketInterval } from "./token-bucket-interval.ts";

export const ALGORITHMS: Readonly<Record<AlgorithmName, Algorithm>> = {
  fixed_window: fixedWindow,
  gcra,
  leaky_bucket: leakyBucket,
  sliding_window_counter: slidingCounter,
  sliding_window_log: slidingLog,
  token_bucket: tokenBucket,
};

/** What decides: the algorithms, and the forms of them that keep a state of another kind. */
export const HANDLERS: readonly Algorithm[] = [
  ...Object.values(ALGORITHMS),
  leakyBucketShaper,
  slidingCounterSegments,
  tokenBucketInterval,
];

function handlerOf({ algorithm, maxDelayUs, refillIntervalUs, segments }: LimitSpec): Algorithm {
  if (algorithm === "leaky_bucket" && maxDelayUs !== undefined) return leakyBucketShaper;
  if (algorithm === "token_bucket" && refillIntervalUs !== undefined) return tokenBucketInterval;
  if (algorithm === "sliding_window_counter" && segments !== undefined) return slidingCounterSegments;
  return ALGORITHMS[algorithm];
}

/** A state of its own: what is done to it does not show in `state`. */
export function copyState(handler: Algorithm, state: AlgorithmState): AlgorithmState {
  return handler.copy?.(state) ?? { ...state };
}

/** Compiles a limit, or says why it cannot be enforced exactly. */
export function compileLimit(spec: LimitSpec): Limit | { readonly problem: string } {
  const handler = handlerOf(spec);
  const compiled = handler.compile(spec);
  if ("problem" in compiled) return compiled;
  return Object.freeze({
    ...spec,
    handler,
    shape: handler.shape?.(spec) ?? handler.name,
    params: Object.freeze(compiled.params),
    never: spec.requestsPerUnit === 0 && spec.algorithm !== "fixed_window",
    ...largestUnit(spec.periodUs),
  });
}
