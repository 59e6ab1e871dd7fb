// The exact arithmetic behind every algorithm with a steady rate (token bucket, leaky bucket, GCRA).
//
// The state is a level that hits raise and time drains. To stay exact for every rate it is held in units chosen so that
// everything is an integer: with N hits per W ticks and g = gcd(N, W), one hit weighs w = W/g units and n = N/g units
// drain per tick of q microseconds. The capacity is burst*w. Nothing is ever rounded in anybody's favour.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit-spec.ts";
import { type Compiled, MAX_AHEAD_US, MAX_PERIOD_US, type Params } from "./algorithm.ts";

/** Describes itself, so that a changed limit is noticed and the level carried over. */
export interface LevelState {
  /** Microseconds per tick under which the level was written; 0 for a counter that was never touched. */
  q: number;
  /** Units drained per tick. */
  n: number;
  /** Units per hit. */
  w: number;
  /** The tick at which the level was true. */
  ts: number;
  /** Used units. */
  level: number;
}

/** Microseconds per tick to choose from, finest first. */
export const TICKS_US = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/**
 * Parameters: [q, n, w, burst, 1 if refused hits are charged]. The tick is the finest one that divides the period and
 * keeps every intermediate within 2^53-1.
 */
export function compileLevel(spec: LimitSpec): Compiled {
  const { requestsPerUnit: hits, periodUs, burst } = spec;
  const countDenied = spec.countDenied ? 1 : 0;
  if (hits === 0) return { params: [1, 1, 1, 1, countDenied] }; // never consulted, see Limit.never
  if ((burst / hits) * periodUs > MAX_PERIOD_US)
    return { problem: "an empty bucket would need over 142 years to fill" };
  const grain = finestGrain(hits, periodUs, ({ n, w }) => 2 * burst * w + n <= MAX_EXACT);
  if (grain !== undefined) return { params: [grain.q, grain.n, grain.w, burst, countDenied] };
  return { problem: `a burst of ${burst} at ${hits} per ${periodUs} us cannot be counted exactly; lower the burst` };
}

/** How a steady rate is measured: microseconds per tick, units per tick, units per hit. */
export interface Grain {
  readonly q: number;
  readonly n: number;
  readonly w: number;
}

/** The grain with the finest tick that divides the period and `fits`. */
export function finestGrain(hits: number, periodUs: number, fits: (grain: Grain) => boolean): Grain | undefined {
  for (const q of TICKS_US) {
    if (periodUs % q !== 0) continue;
    const ticks = periodUs / q;
    const g = gcd(hits, ticks);
    const grain = { q, n: hits / g, w: ticks / g };
    if (fits(grain)) return grain;
  }
  return undefined;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

export function initLevel(): LevelState {
  return { q: 0, n: 0, w: 0, ts: 0, level: 0 };
}

/** See `Algorithm.step`. Statement by statement the same as `step_level` in lua/lib/level.lua. */
export function stepLevel(state: LevelState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [q = 1, n = 1, w = 1, burst = 1, countDenied = 0] = params;
  // The units that the level is in: this limit's, or still those of the limit under which it was written.
  let unitQ = q;
  let unitN = n;
  let unitW = w;
  let ts = Math.floor(nowUs / q);
  let level = 0;
  let changed = false;

  if (state.q > 0) {
    unitQ = state.q;
    unitN = state.n;
    unitW = state.w;
    ts = state.ts;
    level = state.level;
    const nowTick = Math.floor(nowUs / unitQ);
    if (ts * unitQ - nowUs > MAX_AHEAD_US) {
      ts = nowTick;
      changed = true;
    }
    level = drain(level, nowTick - ts, unitN);
    ts = level === 0 ? nowTick : Math.max(ts, nowTick);
  }
  // A faster limit holds from the first touch on. Under a slower one what was used goes on draining at its old pace until
  // something is charged: at the new pace a counter that was full would stay closed far longer than the new limit asks.
  let foreign = unitQ !== q || unitN !== n || unitW !== w;
  if (foreign && unitN / unitW / unitQ <= n / w / q) {
    level = carry(level, unitW, q, n, w);
    ts = carryTick(level, ts * unitQ, nowUs, q);
    unitQ = q;
    unitN = n;
    unitW = w;
    foreign = false;
    changed = true;
  }

  const asked = hits === 0 ? 1 : hits;
  const allowed = asked <= 0 || (asked <= burst && Math.ceil(level / unitW) <= burst - asked);
  const charges = hits > 0 ? allowed || countDenied === 1 : hits < 0 && level > 0;
  if (charges) {
    if (foreign) {
      level = carry(level, unitW, q, n, w);
      ts = carryTick(level, ts * unitQ, nowUs, q);
      unitQ = q;
      unitN = n;
      unitW = w;
    }
    if (hits < 0) level = -hits >= Math.ceil(level / w) ? 0 : level + hits * w;
    else if (allowed) level = Math.min(level, (burst - hits) * w) + hits * w;
    else level = Math.max(level, Math.min(level + hits * w, maxLevel(q, n)));
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = Math.max(0, burst - Math.ceil(level / unitW));
  if (allowed) out.retryAfterUs = 0;
  else if (asked > burst) out.retryAfterUs = -1;
  else out.retryAfterUs = (ts + Math.ceil((level - (burst - asked) * unitW) / unitN)) * unitQ - nowUs;
  out.resetAfterUs = level === 0 ? 0 : (ts + Math.ceil(level / unitN)) * unitQ - nowUs;
  if (changed) {
    state.q = unitQ;
    state.n = unitN;
    state.w = unitW;
    state.ts = ts;
    state.level = level;
  }
  return changed;
}

/** 2^-51: more than a division and a product of doubles can lose together, in proportion. */
const ROUNDING = 2 ** -51;

/** A level in the units of another limit: in proportion, rounded up. What was used stays used. */
function carry(level: number, fromW: number, q: number, n: number, w: number): number {
  const whole = Math.floor(level / fromW);
  const part = (level - whole * fromW) / fromW;
  return Math.min(whole * w + (part > 0 ? Math.ceil(part * w + w * ROUNDING) : 0), maxLevel(q, n));
}

/** The tick of a level that was carried over: never earlier than it was true. An empty one is as good as new. */
function carryTick(level: number, stampUs: number, nowUs: number, q: number): number {
  return level === 0 ? Math.floor(nowUs / q) : Math.ceil(Math.max(nowUs, stampUs) / q);
}

/** The largest level that drains within the longest period: beyond, its times would not be exact. */
export function maxLevel(q: number, n: number): number {
  return Math.min(MAX_EXACT - n, n * Math.floor(MAX_PERIOD_US / q));
}

/** Comparing first keeps the product below the level, so it is exact. */
function drain(level: number, ticks: number, n: number): number {
  if (ticks <= 0) return level;
  return ticks >= Math.ceil(level / n) ? 0 : level - ticks * n;
}

/** See `Algorithm.ttlUs`. */
export function levelTtlUs(state: LevelState, _params: Params, nowUs: number): number {
  if (state.level === 0) return 0;
  return Math.max(0, (state.ts + Math.ceil(state.level / state.n)) * state.q - nowUs);
}
