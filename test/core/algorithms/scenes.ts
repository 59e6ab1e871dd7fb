// Random pasts of a counter, for property tests: a limit, and what came before now.
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import type { Limit } from "../../../src/core/limit.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, HOUR, type LimitSketch, limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { algorithmOf, type Variant } from "./holds.ts";

export interface Arrival {
  /** Microseconds since the arrival before. */
  readonly afterUs: number;
  readonly hits: number;
}

export interface Scene {
  readonly [fc.toStringMethod]: () => string;
  readonly limit: Limit;
  readonly counter: Counter;
  readonly nowUs: number;
  /** What came, and when. */
  readonly log: readonly { readonly atUs: number; readonly hits: number; readonly allowed: boolean }[];
}

/** Some number of hits, of the size of the limits below. */
export const someHits: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: 700 }),
);

export const someTimeUs: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, 1, 166_666, 166_667, SECOND, MINUTE),
  fc.integer({ min: 0, max: 3 * SECOND }),
  fc.integer({ min: 0, max: HOUR }),
);

/** A limit of the variant that its algorithm accepts. */
export function limits(variant: Variant): fc.Arbitrary<LimitSketch> {
  const [algorithm, countDenied] = algorithmOf(variant);
  return fc
    .record({
      algorithm: fc.constant(algorithm),
      requestsPerUnit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(49, 600, 607, 999_983, 1_000_000)),
      periodUs: fc.oneof(fc.constantFrom(1, SECOND, MINUTE, HOUR, DAY), fc.integer({ min: 1, max: 10 * SECOND })),
      burst: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(600, 999_983)),
      countDenied: fc.constant(countDenied),
    })
    .filter((sketch) => !("problem" in compileLimit(limitSpec(sketch))));
}

const LARGEST_UINT32 = 2 ** 32 - 1;
const YEAR = 365 * DAY;

/** Limits with the largest numbers that the variant's algorithm accepts. */
export function largestLimits(variant: Variant): fc.Arbitrary<LimitSketch> {
  const [algorithm, countDenied] = algorithmOf(variant);
  return fc
    .record({
      algorithm: fc.constant(algorithm),
      countDenied: fc.constant(countDenied),
      requestsPerUnit: fc.oneof(
        fc.constantFrom(1, 7, 999_983, LARGEST_UINT32),
        fc.integer({ min: 1, max: LARGEST_UINT32 }),
      ),
      periodUs: fc.oneof(
        fc.constantFrom(1, SECOND, DAY, 30 * DAY, YEAR, 2 ** 52 - 1),
        fc.integer({ min: 1, max: 2 ** 52 - 1 }),
      ),
    })
    .map((sketch) => ({ ...sketch, burst: largestBurst(sketch) }))
    .filter(({ burst }) => burst > 0);
}

/** The largest burst with which the limit compiles, 0 when none does. */
function largestBurst(sketch: LimitSketch): number {
  let accepted = 0;
  let refused = LARGEST_UINT32 + 1;
  while (refused - accepted > 1) {
    const burst = Math.floor((accepted + refused) / 2);
    if ("problem" in compileLimit(limitSpec({ ...sketch, burst }))) refused = burst;
    else accepted = burst;
  }
  return accepted;
}

/** @param hits what the past consists of; charges alone when absent */
export function scenes(variant: Variant, hits: fc.Arbitrary<number> = someHits): fc.Arbitrary<Scene> {
  const past = fc.array(fc.record({ afterUs: someTimeUs, hits }), { maxLength: 20, size: "max" });
  return fc.tuple(limits(variant), past).map(([sketch, arrivals]) => sceneOf(makeLimit(sketch), arrivals));
}

export function sceneOf(limit: Limit, arrivals: readonly Arrival[], startUs = START_US): Scene {
  const counter = new Counter(limit);
  let nowUs = startUs;
  const log = arrivals.map(({ afterUs, hits }) => {
    nowUs += afterUs;
    return { atUs: nowUs, hits, allowed: counter.ask(nowUs, hits).allowed };
  });
  // Shown with a failing example; a limit itself would print its functions.
  const text = JSON.stringify({ limit: limitText(limit), arrivals });
  return { limit, counter, nowUs, log, [fc.toStringMethod]: () => text };
}

function limitText({ algorithm, requestsPerUnit, periodUs, burst, countDenied }: Limit): string {
  return `${algorithm} ${requestsPerUnit} per ${periodUs} us, burst ${burst}${countDenied ? ", counting" : ""}`;
}
