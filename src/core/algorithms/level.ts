// The exact arithmetic behind every algorithm with a steady rate (token bucket, GCRA).
//
// The state is a level that hits raise and time drains. To stay exact for every rate it is held in units chosen so that
// everything is an integer: with N hits per W ticks and g = gcd(N, W), one hit weighs w = W/g units and n = N/g units
// drain per tick of q microseconds. The capacity is burst*w. Nothing is ever rounded in anybody's favour.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit.ts";
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

const TICKS_US = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

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
  for (const q of TICKS_US) {
    if (periodUs % q !== 0) continue;
    const ticks = periodUs / q;
    const g = gcd(hits, ticks);
    const n = hits / g;
    const w = ticks / g;
    if (2 * burst * w + n <= MAX_EXACT) return { params: [q, n, w, burst, countDenied] };
  }
  return { problem: `a burst of ${burst} at ${hits} per ${periodUs} us cannot be counted exactly; lower the burst` };
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** 2^-51: more than a division and a product of doubles can lose together, in proportion. */
const ROUNDING = 2 ** -51;

export function initLevel(): LevelState {
  return { q: 0, n: 0, w: 0, ts: 0, level: 0 };
}

/** See `Algorithm.step`. Statement by statement the same as `step_level` in lua/lib/level.lua. */
export function stepLevel(state: LevelState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [q = 1, n = 1, w = 1, burst = 1, countDenied = 0] = params;
  const capacity = burst * w;
  const nowTick = Math.floor(nowUs / q);
  let ts = nowTick;
  let level = 0;
  let changed = false;

  if (state.q > 0) {
    ts = state.ts;
    level = state.level;
    if (ts * state.q - nowUs > MAX_AHEAD_US) {
      ts = Math.floor(nowUs / state.q);
      changed = true;
    }
    if (state.q !== q || state.n !== n || state.w !== w) {
      // The limit was changed: drain at the old rate first, then carry the used part over, rounded up by one unit.
      level = drain(level, Math.floor(nowUs / state.q) - ts, state.n);
      const whole = Math.floor(level / state.w);
      const part = (level - whole * state.w) / state.w;
      level = Math.min(whole * w + (part > 0 ? Math.ceil(part * w + w * ROUNDING) : 0), capacity);
      ts = Math.ceil(Math.max(nowUs, ts * state.q) / q);
      changed = true;
    }
  }
  level = drain(level, nowTick - ts, n);
  ts = level === 0 ? nowTick : Math.max(ts, nowTick);

  const asked = hits === 0 ? 1 : hits;
  let allowed = true;
  if (asked > 0) {
    allowed = asked <= burst && level <= capacity - asked * w;
    if (hits > 0 && allowed) {
      level = level + hits * w;
      changed = true;
    } else if (hits > 0 && countDenied === 1) {
      // A debt is bounded to what drains within the longest period, or its times would not be exact.
      level = Math.max(level, Math.min(level + hits * w, MAX_EXACT - n, n * Math.floor(MAX_PERIOD_US / q)));
      changed = true;
    }
  } else if (level > 0) {
    level = -hits >= Math.ceil(level / w) ? 0 : level + hits * w;
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = level >= capacity ? 0 : Math.floor((capacity - level) / w);
  if (allowed) out.retryAfterUs = 0;
  else if (asked > burst) out.retryAfterUs = -1;
  else out.retryAfterUs = (ts + Math.ceil((level - (capacity - asked * w)) / n)) * q - nowUs;
  out.resetAfterUs = level === 0 ? 0 : (ts + Math.ceil(level / n)) * q - nowUs;
  if (changed) {
    state.q = q;
    state.n = n;
    state.w = w;
    state.ts = ts;
    state.level = level;
  }
  return changed;
}

/** Comparing first keeps the product below the level, so it is exact. */
function drain(level: number, ticks: number, n: number): number {
  if (ticks <= 0) return level;
  return ticks >= Math.ceil(level / n) ? 0 : level - ticks * n;
}

/** See `Algorithm.ttlUs`. */
export function levelTtlUs(state: LevelState, _params: Params, nowUs: number): number {
  return Math.max(0, (state.ts + Math.ceil(state.level / state.n)) * state.q - nowUs);
}
