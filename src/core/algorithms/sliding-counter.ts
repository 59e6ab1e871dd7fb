// Sliding window counter: hits are counted per aligned window, and the sliding window is taken to hold all hits of the
// current one and a share of the previous one's, as large as the part of it that the sliding window still covers. Three
// numbers for any limit. It takes hits to come evenly: in the worst case almost twice the limit passes within a window's
// length. The form that never lets more than the limit pass is sliding-counter-segments.ts.
//
// A share is never rounded: time runs in ticks, and what is compared is whole ticks. The previous window may still be
// covered for so many ticks, if so many hits of the limit are free.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, type Params } from "./algorithm.ts";
import { TICKS_US } from "./level.ts";

export interface SlidingCounterState {
  /** Windows since 1970; -1 for a counter that was never touched. */
  window: number;
  /** Hits in that window. */
  current: number;
  /** Hits in the window before. Both together are 2^53-1 at the most. */
  previous: number;
}

/** Longest window: 2^51 us, some 71 years, so that now and two windows more stay exact. */
export const MAX_SLIDING_US = 2 ** 51;

/**
 * Parameters: [hits per window, window in microseconds, microseconds per tick, 1 if refused hits are charged]. The tick
 * is the finest one that divides the window and with which the limit's hits, each in each tick, can be counted exactly.
 */
function compile(spec: LimitSpec): Compiled {
  const { requestsPerUnit: limit, periodUs } = spec;
  if (periodUs > MAX_SLIDING_US) return { problem: "a sliding_window_counter may last 71 years at the most" };
  for (const tickUs of TICKS_US) {
    if (periodUs % tickUs !== 0) continue;
    if (3 * limit * (periodUs / tickUs) <= MAX_EXACT)
      return { params: [limit, periodUs, tickUs, spec.countDenied ? 1 : 0] };
  }
  return { problem: `${limit} per ${periodUs} us cannot be weighed exactly; lower the limit, or set \`segments\`` };
}

/** Statement by statement the same as `step_sliding_counter` in lua/sliding-counter.lua. */
function step(state: SlidingCounterState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [limit = 0, periodUs = 1, tickUs = 1, countDenied = 0] = params;
  const nowWindow = Math.floor(nowUs / periodUs);
  let window = state.window;
  let current = state.current;
  let previous = state.previous;
  let changed = false;

  if (window < nowWindow || current + previous === 0) {
    previous = window === nowWindow - 1 ? current : 0;
    current = 0;
    window = nowWindow;
  } else if (window * periodUs - nowUs > MAX_AHEAD_US) {
    // Time stood still where its window began, with all of the previous one inside: these are hits of now, too.
    window = nowWindow;
    current = current + previous;
    previous = 0;
    changed = true;
  }
  const ticks = periodUs / tickUs;
  // Of the previous window, what the sliding one still covers.
  const coveredTicks = ticks - Math.floor(Math.max(0, nowUs - window * periodUs) / tickUs);

  const asked = hits === 0 ? 1 : hits;
  const allowed = asked <= 0 || (asked <= limit && coveredTicks <= mostTicks(limit - current - asked, previous, ticks));
  if (hits > 0 && (allowed || countDenied === 1)) {
    current = current + Math.min(hits, MAX_EXACT - current - previous);
    changed = true;
  } else if (hits < 0 && current + previous > 0) {
    // The newest are given back.
    previous = Math.max(0, previous - Math.max(0, -hits - current));
    current = Math.max(0, current + hits);
    changed = true;
  }

  const room = limit - current;
  out.allowed = allowed;
  if (coveredTicks > mostTicks(room, previous, ticks)) out.remaining = 0;
  else out.remaining = room - Math.ceil((previous * coveredTicks) / ticks);
  if (allowed) out.retryAfterUs = 0;
  else if (asked > limit) out.retryAfterUs = -1;
  else {
    // Once less of the previous window is covered; or of this one, which is then the previous.
    const most = mostTicks(room - asked, previous, ticks);
    const mostAfter = mostTicks(limit - asked, current, ticks);
    if (most >= 0) out.retryAfterUs = window * periodUs + (ticks - most) * tickUs - nowUs;
    else out.retryAfterUs = (window + 1) * periodUs + (ticks - mostAfter) * tickUs - nowUs;
  }
  const resetAfterUs = (window + (current > 0 ? 2 : 1)) * periodUs - nowUs;
  out.resetAfterUs = current + previous === 0 ? 0 : resetAfterUs;
  if (changed) {
    state.window = window;
    state.current = current;
    state.previous = previous;
  }
  return changed;
}

/**
 * For how many ticks a window with so many hits may be covered while so many hits are free; -1 if it must not be at all.
 * The product is below 2^52 (see `compile`), so the quotient of integers is cut exactly.
 */
function mostTicks(free: number, hits: number, ticks: number): number {
  if (free < 0) return -1;
  return hits === 0 ? ticks : Math.floor((free * ticks) / hits);
}

export const slidingCounter: Algorithm<SlidingCounterState> = {
  name: "sliding_window_counter",
  compile,
  init: () => ({ window: -1, current: 0, previous: 0 }),
  step,
  ttlUs: ({ window, current, previous }, [, periodUs = 1], nowUs) =>
    current + previous === 0 ? 0 : Math.max(0, (window + (current > 0 ? 2 : 1)) * periodUs - nowUs),
};
