// Oracle for token bucket and GCRA: a bucket whose used part is an exact fraction of a hit and drains evenly.
// Time passes in ticks, the finest of 1 us, 10 us, .. 1 s with which every number of the algorithm stays exact.
import {
  ceilOf,
  type Fraction,
  floorOf,
  fraction,
  greatestDivisor,
  isAtMost,
  larger,
  minus,
  plus,
  reduced,
  smaller,
  times,
  ZERO,
} from "./fraction.ts";
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

/** How a limit measures: one hit is `hitUnits` units, a tick of `tickUs` drains `tickUnits` of them. */
export interface Grain {
  readonly tickUs: bigint;
  readonly tickUnits: bigint;
  readonly hitUnits: bigint;
}

export interface LevelModel {
  readonly grain: Grain;
  /** The tick at which `used` was true. */
  readonly tick: bigint;
  /** Used part of the bucket, in hits. */
  readonly used: Fraction;
}

export const levelOracle: Oracle<LevelModel> = {
  ask: (state, limit, nowUs, hits) =>
    starts(state, limit, BigInt(nowUs)).map(({ start, rewritten }) =>
      judge(state, start, rewritten, limit, BigInt(nowUs), BigInt(hits)),
    ),
  freshFromUs: (state, nowUs) => {
    // Until its tick has come, a stamp ahead of the clock holds back what is charged next.
    const from = state.tick * state.grain.tickUs;
    return Number(earliest(later(from, BigInt(nowUs)), (atUs) => usedAt(state, atUs).num === 0n));
  },
};

export function grainOf(limit: OracleLimit): Grain {
  const hits = BigInt(limit.requestsPerUnit);
  for (let tickUs = 1n; tickUs <= 1_000_000n; tickUs *= 10n) {
    if (BigInt(limit.periodUs) % tickUs !== 0n) continue;
    const ticks = BigInt(limit.periodUs) / tickUs;
    const divisor = greatestDivisor(hits, ticks);
    const grain = { tickUs, tickUnits: hits / divisor, hitUnits: ticks / divisor };
    if (2n * BigInt(limit.burst) * grain.hitUnits + grain.tickUnits <= LARGEST_EXACT) return grain;
  }
  throw new Error("no tick is coarse enough for this limit");
}

/** The used part once the clock shows `atUs`. Before the state's own tick nothing drains. */
function usedAt({ grain, tick, used }: LevelModel, atUs: bigint): Fraction {
  const ticks = atUs / grain.tickUs - tick;
  if (ticks <= 0n) return used;
  return larger(ZERO, minus(used, times(fraction(grain.tickUnits, grain.hitUnits), ticks)));
}

/** The states from which `now` may be judged, and whether the stored one had to be rewritten to get there. */
function starts(
  state: LevelModel | undefined,
  limit: OracleLimit,
  nowUs: bigint,
): { start: LevelModel; rewritten: boolean }[] {
  const grain = grainOf(limit);
  if (state === undefined) return [{ start: { grain, tick: nowUs / grain.tickUs, used: ZERO }, rewritten: false }];
  const badClock = state.tick * state.grain.tickUs - nowUs > TRUSTED_AHEAD_US;
  const trusted = badClock ? { ...state, tick: nowUs / state.grain.tickUs } : state;
  if (sameGrain(state.grain, grain)) return [{ start: trusted, rewritten: badClock }];
  return carriedOver(trusted, grain, limit, nowUs).map((start) => ({ start, rewritten: true }));
}

function later(a: bigint, b: bigint): bigint {
  if (a < b) return b;
  return a;
}

function sameGrain(a: Grain, b: Grain): boolean {
  return a.tickUs === b.tickUs && a.tickUnits === b.tickUnits && a.hitUnits === b.hitUnits;
}

/**
 * A state of another limit: it drains at the old rate up to now, then its used part stays used, rounded up to the next
 * unit of the new limit or one more, never above what the new limit holds, from the next full tick on.
 */
function carriedOver(state: LevelModel, grain: Grain, limit: OracleLimit, nowUs: bigint): LevelModel[] {
  const stampUs = state.tick * state.grain.tickUs;
  const tick = ceilOf(fraction(later(stampUs, nowUs), grain.tickUs));
  const units = ceilOf(times(usedAt(state, nowUs), grain.hitUnits));
  const capacity = fraction(BigInt(limit.burst));
  return [units, units + 1n].map((rounded) => ({
    grain,
    tick,
    used: smaller(capacity, fraction(rounded, grain.hitUnits)),
  }));
}

function judge(
  stored: LevelModel | undefined,
  start: LevelModel,
  rewritten: boolean,
  limit: OracleLimit,
  nowUs: bigint,
  hits: bigint,
): OracleStep<LevelModel> {
  const { grain } = start;
  const capacity = fraction(BigInt(limit.burst));
  const nowTick = nowUs / grain.tickUs;
  const used = reduced(usedAt(start, nowUs));
  // With nothing used the counter is as good as new, whatever its stamp says.
  const current: LevelModel = { grain, tick: used.num === 0n ? nowTick : later(start.tick, nowTick), used };
  const asked = hits === 0n ? 1n : hits;
  const fits = (state: LevelModel, atUs: bigint): boolean =>
    isAtMost(plus(usedAt(state, atUs), fraction(asked)), capacity);

  const allowed = asked < 0n || fits(current, nowUs);
  let next = current;
  let charged = false;
  if (hits > 0n && allowed) {
    next = { ...current, used: plus(current.used, fraction(hits)) };
    charged = true;
  } else if (hits > 0n && limit.countDenied) {
    next = { ...current, used: larger(current.used, smaller(mostUsed(grain), plus(current.used, fraction(hits)))) };
    charged = true;
  } else if (hits < 0n && current.used.num > 0n) {
    next = { ...current, used: larger(ZERO, plus(current.used, fraction(hits))) };
    charged = true;
  }

  let retryAfterUs = 0n;
  if (!allowed) {
    retryAfterUs = asked > BigInt(limit.burst) ? -1n : earliest(nowUs, (atUs) => fits(next, atUs)) - nowUs;
  }
  const free = floorOf(minus(capacity, next.used));
  return {
    answer: {
      allowed,
      remaining: Number(free > 0n ? free : 0n),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(earliest(nowUs, (atUs) => usedAt(next, atUs).num === 0n) - nowUs),
    },
    state: charged || rewritten ? { ...next, used: reduced(next.used) } : stored,
  };
}

/**
 * Refused hits are counted as long as every number stays exact and the debt drains within the longest period, 2^52 us.
 * A level that is above that already stays.
 */
function mostUsed({ tickUs, tickUnits, hitUnits }: Grain): Fraction {
  const units = [LARGEST_EXACT - tickUnits, tickUnits * (2n ** 52n / tickUs)];
  return fraction(
    units.reduce((a, b) => (a < b ? a : b)),
    hitUnits,
  );
}
