// Random pasts of a counter, for property tests: a limit, and what came before now.
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import type { Limit } from "../../../src/core/limit.ts";
import { WINDOWS } from "../../../src/core/limit-spec.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, HOUR, type LimitSketch, limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { partsOf, type Variant } from "./holds.ts";

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

/** What the limits of all variants are made of. */
interface Numbers {
  readonly requestsPerUnit: number;
  readonly periodUs: number;
  readonly burst: number;
}

/** A limit of the variant. The burst of a shaper becomes a delay that lets about as many hits come at once, that of segments a number of them. */
export function sketchOf(variant: Variant, { requestsPerUnit, periodUs, burst }: Numbers): LimitSketch {
  const { handler, countDenied } = partsOf(variant);
  switch (handler) {
    case "leaky_bucket.shaper": {
      const maxDelayUs = Math.ceil(((burst - 1) * periodUs) / requestsPerUnit) + 1;
      return { algorithm: "leaky_bucket", requestsPerUnit, periodUs, maxDelayUs, countDenied };
    }
    case "token_bucket.interval": {
      const interval = { periodUs, refillIntervalUs: periodUs };
      return { algorithm: "token_bucket", requestsPerUnit, ...interval, burst, countDenied };
    }
    case "sliding_window_counter.segments": {
      const segments = Math.min(periodUs, 1 + (burst % 12));
      return { algorithm: "sliding_window_counter", requestsPerUnit, periodUs, segments, countDenied };
    }
    default:
      return { algorithm: handler, requestsPerUnit, periodUs, burst, countDenied };
  }
}

/** A limit of the variant that its algorithm accepts. */
export function limits(variant: Variant): fc.Arbitrary<LimitSketch> {
  return fc
    .record({
      requestsPerUnit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(49, 600, 607, 999_983, 1_000_000)),
      periodUs: fc.oneof(fc.constantFrom(1, SECOND, MINUTE, HOUR, DAY), fc.integer({ min: 1, max: 10 * SECOND })),
      burst: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(600, 999_983)),
    })
    .map((numbers) => sketchOf(variant, numbers))
    .filter(isAccepted);
}

const LARGEST_UINT32 = 2 ** 32 - 1;
const YEAR = 365 * DAY;

/** Limits with the largest numbers that the variant's algorithm accepts. */
export function largestLimits(variant: Variant): fc.Arbitrary<LimitSketch> {
  return fc
    .record({
      requestsPerUnit: fc.oneof(
        fc.constantFrom(1, 7, 999_983, LARGEST_UINT32),
        fc.integer({ min: 1, max: LARGEST_UINT32 }),
      ),
      periodUs: fc.oneof(
        fc.constantFrom(1, SECOND, DAY, 30 * DAY, YEAR, 2 ** 52 - 1),
        fc.integer({ min: 1, max: 2 ** 52 - 1 }),
      ),
    })
    .map((numbers) => largestOf(sketchOf(variant, { ...numbers, burst: 1 })))
    .filter(isAccepted);
}

/** The limit with the largest burst, or the longest delay, with which it compiles; a window with so many hits, or as many as do. */
function largestOf(sketch: LimitSketch): LimitSketch {
  const shapes = sketch.maxDelayUs !== undefined;
  const windows = WINDOWS.has(sketch.algorithm);
  const word = windows ? "requestsPerUnit" : shapes ? "maxDelayUs" : "burst";
  const sized = (size: number): LimitSketch => ({ ...sketch, [word]: size });
  let accepted = 0;
  let refused = windows ? sketch.requestsPerUnit + 1 : shapes ? 2 ** 53 - 1 : LARGEST_UINT32 + 1;
  while (refused - accepted > 1) {
    const size = accepted + Math.floor((refused - accepted) / 2);
    if (isAccepted(sized(size))) accepted = size;
    else refused = size;
  }
  return sized(accepted);
}

function isAccepted(sketch: LimitSketch): boolean {
  return sketch.burst !== 0 && sketch.requestsPerUnit !== 0 && !("problem" in compileLimit(limitSpec(sketch)));
}

/** The sketch as a limit whose counter has the same key: where the period says when something comes, it stays. */
export function sameKey(sketch: LimitSketch, limit: LimitSketch): LimitSketch {
  const { algorithm, periodUs, refillIntervalUs, segments } = limit;
  if (WINDOWS.has(algorithm)) return { ...sketch, periodUs, segments };
  if (refillIntervalUs === undefined) return sketch;
  // No larger than what would be refilled within 142 years.
  const burst = Math.min(sketch.burst ?? 1, sketch.requestsPerUnit * Math.floor(2 ** 52 / periodUs));
  return { ...sketch, periodUs, refillIntervalUs, burst };
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

function limitText({ handler, requestsPerUnit, periodUs, burst, maxDelayUs, countDenied }: Limit): string {
  const size = maxDelayUs === undefined ? `burst ${burst}` : `delay ${maxDelayUs} us`;
  return `${handler.name} ${requestsPerUnit} per ${periodUs} us, ${size}${countDenied ? ", counting" : ""}`;
}
