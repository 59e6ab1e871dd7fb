// Fixed window: time is cut into windows aligned to 1970 (weeks start on Thursday 00:00 UTC), each with a counter of its
// own. At most the limit passes per window, up to twice the limit around a window's edge. Refused hits are counted unless
// the rule says otherwise, as at envoyproxy/ratelimit.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, MAX_PERIOD_US, type Params } from "./algorithm.ts";

export interface FixedWindowState {
  /** Windows since 1970; -1 for a counter that was never touched. */
  window: number;
  /** Hits in that window. */
  count: number;
}

/** Parameters: [hits per window, window in microseconds, 1 if refused hits are charged]. */
function compile(spec: LimitSpec): Compiled {
  if (spec.periodUs > MAX_PERIOD_US) return { problem: "a window may last 142 years at the most" };
  return { params: [spec.requestsPerUnit, spec.periodUs, spec.countDenied ? 1 : 0] };
}

/** Statement by statement the same as `step_fixed_window` in lua/fixed-window.lua. */
function step(state: FixedWindowState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [limit = 0, periodUs = 1, countDenied = 0] = params;
  const nowWindow = Math.floor(nowUs / periodUs);
  let window = state.window;
  let count = state.count;
  let changed = false;

  if (window < nowWindow) {
    window = nowWindow;
    count = 0;
  } else if (window * periodUs - nowUs > MAX_AHEAD_US) {
    window = nowWindow;
    changed = true;
  }

  let allowed = true;
  if (hits > 0) {
    allowed = count + hits <= limit;
    if (allowed || countDenied === 1) {
      count = Math.min(count + hits, MAX_EXACT);
      changed = true;
    }
  } else if (hits === 0) {
    allowed = count <= limit;
  } else if (count > 0) {
    count = Math.max(0, count + hits);
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = count >= limit ? 0 : limit - count;
  out.resetAfterUs = (window + 1) * periodUs - nowUs;
  // A look tells when one hit would pass, which may be later although the look itself is answered OK.
  const asked = hits === 0 ? 1 : hits;
  if (hits === 0 ? count + 1 <= limit : allowed) out.retryAfterUs = 0;
  else out.retryAfterUs = asked > limit ? -1 : out.resetAfterUs;
  if (changed) {
    state.window = window;
    state.count = count;
  }
  return changed;
}

export const fixedWindow: Algorithm<FixedWindowState> = {
  name: "fixed_window",
  compile,
  init: () => ({ window: -1, count: 0 }),
  step,
  ttlUs: (state, [, periodUs = 1], nowUs) => Math.max(0, (state.window + 1) * periodUs - nowUs),
};
