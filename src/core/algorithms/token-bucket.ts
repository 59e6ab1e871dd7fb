// Token bucket with continuous refill: a bucket holds up to `burst` tokens, gains `requests_per_unit` per period, evenly,
// and a hit takes one. The used tokens are the level of `level.ts`, so an untouched bucket is full.
// The form that refills at intervals is token-bucket-interval.ts.
import type { Algorithm } from "./algorithm.ts";
import { compileLevel, initLevel, type LevelState, levelTtlUs, stepLevel } from "./level.ts";

export const tokenBucket: Algorithm<LevelState> = {
  name: "token_bucket",
  compile: compileLevel,
  init: initLevel,
  step: stepLevel,
  ttlUs: levelTtlUs,
};
