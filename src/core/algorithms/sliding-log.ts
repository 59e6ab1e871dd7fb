// Sliding window log: remembers every hit that passed, so no window of the period's length, wherever it begins, ever has
// more than the limit. The most exact of all algorithms and the one whose state grows, so limits are bounded.
//
// Entries are hits of one microsecond. Each carries the sum of all hits up to it, which makes every question a binary
// search. What left the window is cut off once it is a quarter of the log, so that a hit need not move the others.
import type { Decision } from "../decision.ts";
import type { LimitSpec } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, MAX_PERIOD_US, type Params } from "./algorithm.ts";

export interface LogState {
  /** Microseconds since 1970 of each entry, rising. */
  times: number[];
  /**
   * Sums of hits, modulo 2^32; one more than entries. The first is where counting begins: hits up to it are forgotten.
   * The others belong to the entries.
   */
  sums: number[];
}

/** Largest limit: its log takes some 160 kB, and Redis copies it to look at it. */
export const MAX_LOG_LIMIT = 10_000;

/** Largest limit unless WEIR_SLIDING_LOG_MAX says otherwise. */
export const DEFAULT_LOG_LIMIT = 1_000;

const SUM_MODULUS = 2 ** 32;

/** Parameters: [hits per window, window in microseconds, 1 if refused hits are charged]. */
function compile(spec: LimitSpec): Compiled {
  if (spec.periodUs > MAX_PERIOD_US) return { problem: "a window may last 142 years at the most" };
  if (spec.requestsPerUnit > MAX_LOG_LIMIT)
    return { problem: `a sliding_window_log remembers every hit and so takes at most ${MAX_LOG_LIMIT} per window` };
  return { params: [spec.requestsPerUnit, spec.periodUs, spec.countDenied ? 1 : 0] };
}

/** Statement by statement the same as `step_sliding_log` in lua/sliding-log.lua. */
function step(state: LogState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [limit = 0, periodUs = 1, countDenied = 0] = params;
  const { times, sums } = state;
  const count = times.length;
  const last = sums[count] ?? 0;
  let changed = false;

  // Time stands still while the clock is behind the newest entry.
  let tailUs = count === 0 ? nowUs : (times[count - 1] ?? 0);
  let stampUs = Math.max(nowUs, tailUs);
  const held = hitsBetween(sums[0] ?? 0, last);
  const first = Math.max(
    firstAfter(times, 0, count, stampUs - periodUs),
    firstWithin(sums, 0, count, last, held - 1), // the entries before are forgotten
  );
  let used = Math.min(held, hitsBetween(sums[first] ?? 0, last));

  // The log to keep: entries from `first` to before `upTo`, and behind them one with `tailUs` and `tailSum`, unless
  // nothing is used.
  let upTo = used === 0 ? count : count - 1;
  let tailSum = last;
  let rewrite = first * 4 >= count;
  if (tailUs - nowUs > MAX_AHEAD_US) {
    upTo = firstAfter(times, first, upTo, nowUs - 1);
    tailUs = nowUs;
    stampUs = nowUs;
    rewrite = true;
    changed = true;
  }

  const asked = hits === 0 ? 1 : hits;
  const allowed = asked <= 0 || asked <= limit - used;
  if (hits > 0 && (allowed || countDenied === 1)) {
    // A refused hit pushes the oldest out of a log that holds the limit or more: they would be gone before it.
    const most = Math.max(limit, used);
    if (used === 0 || tailUs !== stampUs) {
      upTo = count;
      tailUs = stampUs;
    }
    tailSum = wrapSum(last + Math.min(hits, most));
    used = Math.min(used + Math.min(hits, most), most);
    changed = true;
  } else if (hits < 0 && used > 0) {
    if (-hits >= used) {
      upTo = first;
      tailSum = 0;
      used = 0;
    } else {
      // The newest are given back.
      const at = firstWithin(sums, first, upTo, last, -hits);
      if (at < upTo) {
        upTo = at;
        tailUs = times[at] ?? 0;
      }
      tailSum = wrapSum(last + hits);
      used = used + hits;
    }
    rewrite = true;
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = Math.max(0, limit - used);
  if (allowed) out.retryAfterUs = 0;
  else if (asked > limit) out.retryAfterUs = -1;
  else {
    const at = firstWithin(sums, first, upTo, tailSum, limit - asked);
    out.retryAfterUs = (at < upTo ? (times[at] ?? 0) : tailUs) + periodUs - nowUs;
  }
  out.resetAfterUs = used === 0 ? 0 : tailUs + periodUs - nowUs;
  if (changed) {
    times.length = upTo;
    sums.length = upTo + 1;
    if (used > 0) {
      times.push(tailUs);
      sums.push(tailSum);
    }
    if (rewrite) {
      times.splice(0, first);
      sums.splice(0, first);
    }
    if (rewrite || !allowed) sums[0] = wrapSum(tailSum - used);
  }
  return changed;
}

/** The first entry, from one to before another, that is later than `us`; the end when none is. */
function firstAfter(times: readonly number[], from: number, to: number, us: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((times[middle] ?? 0) > us) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first entry, from one to before another, after which no more than `most` hits came up to `sum`. */
function firstWithin(sums: readonly number[], from: number, to: number, sum: number, most: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (hitsBetween(sums[middle + 1] ?? 0, sum) <= most) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Exact as long as a log holds fewer than 2^32 hits: those of a log are far fewer. */
function hitsBetween(earlier: number, later: number): number {
  return wrapSum(later - earlier);
}

function wrapSum(sum: number): number {
  if (sum < 0) return sum + SUM_MODULUS;
  return sum >= SUM_MODULUS ? sum - SUM_MODULUS : sum;
}

export const slidingLog: Algorithm<LogState> = {
  name: "sliding_window_log",
  compile,
  init: () => ({ times: [], sums: [0] }),
  copy: ({ times, sums }) => ({ times: [...times], sums: [...sums] }),
  step,
  ttlUs: ({ times }, [, periodUs = 1], nowUs) => {
    const newestUs = times[times.length - 1];
    return newestUs === undefined ? 0 : Math.max(0, newestUs + periodUs - nowUs);
  },
};
