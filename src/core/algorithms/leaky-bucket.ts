// Leaky bucket as a meter: every hit pours one unit into a bucket that holds `burst` and leaks `requests_per_unit` per
// period, evenly; what would overflow is refused. The content is the level of `level.ts`, so it decides as the token
// bucket does. The form that delays before it refuses is leaky-bucket-shaper.ts.
import type { Algorithm } from "./algorithm.ts";
import { compileLevel, initLevel, type LevelState, levelTtlUs, stepLevel } from "./level.ts";

export const leakyBucket: Algorithm<LevelState> = {
  name: "leaky_bucket",
  compile: compileLevel,
  init: initLevel,
  step: stepLevel,
  ttlUs: levelTtlUs,
};
