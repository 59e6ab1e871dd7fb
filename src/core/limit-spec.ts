// What a limit says: units, periods and numbers, before an algorithm compiles it.

/** Units of the rule grammar and of Envoy's API. Months have 30 days and years 365, as at envoyproxy/ratelimit. */
export type Unit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

export const UNIT_SECONDS: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

export const US_PER_SECOND = 1_000_000;

/** Largest integer that a double (JavaScript's and Redis Lua's number) holds exactly: 2^53-1. */
export const MAX_EXACT = Number.MAX_SAFE_INTEGER;

/** Largest number of a uint32 field of an answer. */
export const MAX_UINT32 = 0xffff_ffff;

export type AlgorithmName =
  | "fixed_window"
  | "gcra"
  | "leaky_bucket"
  | "sliding_window_counter"
  | "sliding_window_log"
  | "token_bucket";

/** Algorithms that count in windows: what may pass at once is their limit, and there is no burst. */
export const WINDOWS: ReadonlySet<AlgorithmName> = new Set([
  "fixed_window",
  "sliding_window_counter",
  "sliding_window_log",
]);

/** What a rule or an override says, before an algorithm compiles it. */
export interface LimitSpec {
  readonly algorithm: AlgorithmName;
  /** 0 to 2^32-1. */
  readonly requestsPerUnit: number;
  /** Microseconds, at least 1. */
  readonly periodUs: number;
  /** Hits that may come at once, at least 1; `requestsPerUnit` when the rule does not say. Unused by windows and shapers. */
  readonly burst: number;
  /** Microseconds, at least 1: a `leaky_bucket` delays hits up to so long before it refuses. Without it none waits. */
  readonly maxDelayUs?: number | undefined;
  /**
   * Microseconds, at least 1: a `token_bucket` gains `requestsPerUnit` at once at the end of each interval instead of
   * evenly. It is the period, so `periodUs` is the same number.
   */
  readonly refillIntervalUs?: number | undefined;
  /** 1 to 100: a `sliding_window_counter` counts so many parts of its window apart. Without it, it weighs whole windows. */
  readonly segments?: number | undefined;
  /** Whether a refused hit is charged all the same. */
  readonly countDenied: boolean;
  /** Shown in answers; may be empty. */
  readonly name: string;
}

const LARGEST_FIRST: readonly Unit[] = ["year", "month", "week", "day", "hour", "minute", "second"];

/** The largest unit that divides the period, and how often it fits. */
export function largestUnit(periodUs: number): { unit: Unit | undefined; unitMultiplier: number } {
  for (const unit of LARGEST_FIRST) {
    const unitUs = UNIT_SECONDS[unit] * US_PER_SECOND;
    if (periodUs % unitUs === 0) return { unit, unitMultiplier: periodUs / unitUs };
  }
  return { unit: undefined, unitMultiplier: 1 };
}
