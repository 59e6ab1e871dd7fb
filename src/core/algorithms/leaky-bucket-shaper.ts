// Leaky bucket as a shaper: hits leave evenly, `requests_per_unit` per period, and one that comes too early is told how
// long to wait. It passes if no hit of the request has to wait longer than `max_delay`. weir never waits itself.
//
// Time runs in ticks, as in level.ts. The state is how long the next hit would have to wait, in n-ths of a tick, of
// which a hit adds w; an idle counter lets one hit leave at once.
import type { Decision } from "../decision.ts";
import type { LimitSpec } from "../limit-spec.ts";
import { MAX_EXACT } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, MAX_PERIOD_US, type Params } from "./algorithm.ts";
import { finestGrain, maxLevel } from "./level.ts";

/** Describes itself, so that a changed rate is noticed. */
export interface ShaperState {
  /** Microseconds per tick; 0 for a counter that was never touched. */
  q: number;
  /** Parts of a tick in which the wait is held. */
  n: number;
  /** The tick at which the wait was true. */
  ts: number;
  /** Until the next hit may leave, in n-ths of a tick. */
  wait: number;
}

/**
 * Parameters: [q, n, w, longest wait in ticks, hits that may come at once, 1 if refused hits are charged]. A longest
 * wait that is no whole number of ticks is cut to one.
 */
function compile(spec: LimitSpec): Compiled {
  const { requestsPerUnit: hits, periodUs, maxDelayUs = 0 } = spec;
  const countDenied = spec.countDenied ? 1 : 0;
  if (hits === 0) return { params: [1, 1, 1, 0, 1, countDenied] }; // never consulted, see Limit.never
  if (maxDelayUs + periodUs / hits > MAX_PERIOD_US)
    return { problem: "a full queue would need over 142 years to empty" };
  const ticks = (q: number): number => Math.floor(maxDelayUs / q);
  const grain = finestGrain(hits, periodUs, ({ q, n, w }) => 2 * (n * ticks(q) + w) + n <= MAX_EXACT);
  if (grain === undefined) {
    return {
      problem: `a delay of ${maxDelayUs} us at ${hits} per ${periodUs} us cannot be counted exactly; lower \`max_delay\``,
    };
  }
  const { q, n, w } = grain;
  return { params: [q, n, w, ticks(q), Math.floor((n * ticks(q)) / w) + 1, countDenied] };
}

/** Statement by statement the same as `step_shaper` in lua/leaky-bucket-shaper.lua. */
function step(state: ShaperState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [q = 1, n = 1, w = 1, maxTicks = 0, burst = 1, countDenied = 0] = params;
  const nowTick = Math.floor(nowUs / q);
  let changed = false;
  // At tick `ts` the next hit waits for `ticks` and `parts` n-ths of one.
  let ts = nowTick;
  let ticks = 0;
  let parts = 0;

  if (state.q > 0) {
    if (state.ts * state.q - nowUs > MAX_AHEAD_US) {
      state.ts = Math.floor(nowUs / state.q);
      changed = true;
    }
    ts = state.ts;
    ticks = Math.floor(state.wait / state.n);
    parts = state.wait - ticks * state.n;
    if (state.q !== q || state.n !== n) {
      // The rate has changed, but those who were told to wait leave as they were told, and the next one after them: the
      // moment stays, rounded up to a tick.
      const stampUs = ts * state.q;
      const freeUs = stampUs + ticks * state.q + Math.ceil((parts * state.q) / state.n);
      ts = Math.floor(stampUs / q);
      ticks = Math.ceil(freeUs / q) - ts;
      parts = 0;
    }
    if (nowTick - ts > ticks) {
      ticks = 0;
      parts = 0;
    } else if (nowTick > ts) {
      ticks = ticks - (nowTick - ts);
    }
    ts = ticks === 0 && parts === 0 ? nowTick : Math.max(ts, nowTick);
  }

  const asked = hits === 0 ? 1 : hits;
  // What may still be added before a hit would wait too long; below 0 when the next one would.
  let room = ticks > maxTicks ? -1 : (maxTicks - ticks) * n - parts;
  const allowed = asked <= 0 || (asked <= burst && (asked - 1) * w <= room);
  const delayTicks = allowed && hits >= 0 ? ticks + (parts > 0 ? 1 : 0) : 0;
  out.delayUs = delayTicks === 0 ? 0 : (ts + delayTicks) * q - Math.max(nowUs, ts * q);

  const charges = hits > 0 ? allowed || countDenied === 1 : hits < 0 && (ticks > 0 || parts > 0);
  if (charges) {
    const mostTicks = Math.floor(maxLevel(q, n) / n);
    let wait = ticks >= mostTicks ? mostTicks * n : ticks * n + parts;
    if (hits < 0) wait = -hits >= Math.ceil(wait / w) ? 0 : wait + hits * w;
    else if (allowed) wait = wait + hits * w;
    else wait = Math.min(wait + hits * w, mostTicks * n);
    ticks = Math.floor(wait / n);
    parts = wait - ticks * n;
    room = ticks > maxTicks ? -1 : (maxTicks - ticks) * n - parts;
    state.q = q;
    state.n = n;
    state.ts = ts;
    state.wait = wait;
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = room < 0 ? 0 : Math.floor(room / w) + 1;
  if (allowed) out.retryAfterUs = 0;
  else if (asked > burst) out.retryAfterUs = -1;
  else out.retryAfterUs = (ts + ticks - maxTicks + Math.ceil(((asked - 1) * w + parts) / n)) * q - nowUs;
  const resetTicks = ticks + (parts > 0 ? 1 : 0);
  out.resetAfterUs = resetTicks === 0 ? 0 : (ts + resetTicks) * q - nowUs;
  return changed;
}

export const leakyBucketShaper: Algorithm<ShaperState> = {
  name: "leaky_bucket.shaper",
  compile,
  init: () => ({ q: 0, n: 0, ts: 0, wait: 0 }),
  step,
  ttlUs: (state, _params, nowUs) =>
    state.wait === 0 ? 0 : Math.max(0, (state.ts + Math.ceil(state.wait / state.n)) * state.q - nowUs),
};
