// GCRA (ITU-T I.371, annex A): a hit conforms if it does not come earlier than its theoretical arrival time (TAT)
// allows. With T the time per hit, TAT - now is the level's drain time and the tolerance is (burst-1)*T, so GCRA is the
// level of `level.ts` seen from the other side. The level is kept instead of the TAT because it stays exact when T is
// not a whole number of microseconds, and can be carried over when the limit changes.
import type { Algorithm } from "./algorithm.ts";
import { compileLevel, initLevel, type LevelState, levelTtlUs, stepLevel } from "./level.ts";

export const gcra: Algorithm<LevelState> = {
  name: "gcra",
  compile: compileLevel,
  init: initLevel,
  step: stepLevel,
  ttlUs: levelTtlUs,
};
