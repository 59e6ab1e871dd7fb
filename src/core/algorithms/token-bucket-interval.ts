// Token bucket with refill at intervals: a bucket holds up to `burst` tokens and gains `requests_per_unit` at once at the
// end of each `refill_interval`. Intervals begin with the first hit that a full bucket lets pass.
//
// What is kept is what was used, not what is left, so that another burst changes nothing of it. The interval is in the
// counter's key.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, MAX_PERIOD_US, type Params } from "./algorithm.ts";

/** Describes itself, so that a changed refill is noticed. */
export interface IntervalState {
  /** Tokens per interval under which the counter was written; 0 for one that was never touched. */
  refill: number;
  /** When the interval began, microseconds since 1970. */
  since: number;
  /** Used tokens. */
  used: number;
}

/** Parameters: [interval in microseconds, tokens per interval, burst, 1 if refused hits are charged]. */
function compile(spec: LimitSpec): Compiled {
  const { requestsPerUnit: refill, periodUs, burst } = spec;
  const countDenied = spec.countDenied ? 1 : 0;
  if (refill === 0) return { params: [periodUs, 1, 1, countDenied] }; // never consulted, see Limit.never
  if (Math.ceil(burst / refill) * periodUs > MAX_PERIOD_US) {
    return { problem: "an empty bucket would need over 142 years to fill" };
  }
  return { params: [periodUs, refill, burst, countDenied] };
}

/** Statement by statement the same as `step_interval` in lua/token-bucket-interval.lua. */
function step(state: IntervalState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [intervalUs = 1, refill = 1, burst = 1, countDenied = 0] = params;
  // Tokens per interval: this limit's, or still those of the limit under which the counter was written.
  let pace = refill;
  let since = nowUs;
  let used = 0;
  let changed = false;

  if (state.refill > 0) {
    pace = state.refill;
    since = state.since;
    used = state.used;
    if (since - nowUs > MAX_AHEAD_US) {
      since = nowUs;
      changed = true;
    }
    const intervals = Math.floor((nowUs - since) / intervalUs);
    if (intervals > 0) {
      // Comparing first keeps the product below what was used, so it is exact.
      used = intervals >= Math.ceil(used / pace) ? 0 : used - intervals * pace;
      since = since + intervals * intervalUs;
    }
    if (used === 0) since = nowUs;
  }
  // A raised limit holds from the first touch on. Under a lowered one what was used comes back at its old pace until
  // something is charged: at the new pace a bucket that was empty would stay so far longer than the new limit asks.
  if (pace < refill) {
    pace = refill;
    changed = true;
  }

  const asked = hits === 0 ? 1 : hits;
  const allowed = asked <= 0 || (asked <= burst && used <= burst - asked);
  const charges = hits > 0 ? allowed || countDenied === 1 : hits < 0 && used > 0;
  if (charges) {
    pace = refill;
    const most = Math.min(MAX_EXACT, refill * Math.floor(MAX_PERIOD_US / intervalUs));
    used = Math.min(Math.max(0, used + hits), most);
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = Math.max(0, burst - used);
  if (allowed) out.retryAfterUs = 0;
  else if (asked > burst) out.retryAfterUs = -1;
  else out.retryAfterUs = Math.ceil((used - (burst - asked)) / pace) * intervalUs - (nowUs - since);
  out.resetAfterUs = used === 0 ? 0 : Math.ceil(used / pace) * intervalUs - (nowUs - since);
  if (changed) {
    state.refill = pace;
    state.since = since;
    state.used = used;
  }
  return changed;
}

export const tokenBucketInterval: Algorithm<IntervalState> = {
  name: "token_bucket.interval",
  compile,
  init: () => ({ refill: 0, since: 0, used: 0 }),
  step,
  ttlUs: ({ refill, since, used }, [intervalUs = 1], nowUs) =>
    used === 0 ? 0 : Math.max(0, Math.ceil(used / refill) * intervalUs - (nowUs - since)),
};
