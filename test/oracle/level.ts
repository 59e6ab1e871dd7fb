// Oracle for token bucket, leaky bucket (the meter) and GCRA: a bucket whose used part is an exact fraction of a hit and drains evenly.
// Time passes in ticks, the finest of 1 us, 10 us, .. 1 s with which every number of the algorithm stays exact.
import {
  ceilOf,
  type Fraction,
  floorOf,
  fraction,
  greatestDivisor,
  isAtMost,
  isBelow,
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
  ask: (state, limit, nowUs, hits) => ask(state, limit, BigInt(nowUs), BigInt(hits)),
  freshFromUs: (state, nowUs) => Number(earliest(BigInt(nowUs), (atUs) => usedAt(state, atUs).num === 0n)),
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

/** What is asked of a counter at one moment. */
interface Question {
  readonly limit: OracleLimit;
  readonly nowUs: bigint;
  readonly hits: bigint;
}

function ask(
  state: LevelModel | undefined,
  limit: OracleLimit,
  nowUs: bigint,
  hits: bigint,
): readonly OracleStep<LevelModel>[] {
  const question = { limit, nowUs, hits };
  const grain = grainOf(limit);
  if (state === undefined) {
    return [judge(undefined, { grain, tick: nowUs / grain.tickUs, used: ZERO }, question)];
  }
  const badClock = state.tick * state.grain.tickUs - nowUs > TRUSTED_AHEAD_US;
  const trusted = badClock ? { ...state, tick: nowUs / state.grain.tickUs } : state;
  // What stays stored when nothing is charged.
  const kept = badClock ? trusted : state;
  if (sameGrain(state.grain, grain)) return [judge(kept, trusted, question)];
  const [oldRate, newRate] = [rateOf(state.grain), rateOf(grain)];
  // Equal rates in other grains may be taken for either: the implementation compares them as doubles.
  return [
    ...(isBelow(oldRate, newRate) ? [] : underLoweredLimit(kept, settled(trusted, nowUs), grain, question)),
    ...(isBelow(newRate, oldRate) ? [] : underRaisedLimit(trusted, grain, question)),
  ];
}

/**
 * A raised limit takes the counter over at once, also when it only looks: the used part stays used, even if it is more
 * than the new limit holds.
 */
function underRaisedLimit(state: LevelModel, grain: Grain, question: Question): OracleStep<LevelModel>[] {
  return carriedOver(state, grain, question.nowUs).map((carried) => {
    const taken = settled(carried, question.nowUs);
    return judge(taken, taken, question);
  });
}

/**
 * Under a lowered limit a counter goes on draining at its own, faster rate until something is charged or given back.
 * Only then does the new limit take it over.
 */
function underLoweredLimit(
  kept: LevelModel,
  current: LevelModel,
  grain: Grain,
  question: Question,
): OracleStep<LevelModel>[] {
  const { limit, nowUs, hits } = question;
  const allowed = hits < 0n || fits(current, limit, nowUs, hits === 0n ? 1n : hits);
  const writes = hits < 0n ? current.used.num > 0n : hits > 0n && (allowed || limit.countDenied);
  if (!writes) return [{ answer: answerOf(current, allowed, question), state: kept }];
  return carriedOver(current, grain, nowUs).map((carried) => {
    const taken = settled(carried, nowUs);
    // Carrying over may round up by more than there was room for.
    const room = minus(fraction(BigInt(limit.burst)), fraction(hits));
    const used = hits > 0n && allowed ? smaller(taken.used, room) : taken.used;
    const next = charged({ ...taken, used }, allowed, question);
    return { answer: answerOf(next, allowed, question), state: next };
  });
}

function rateOf({ tickUs, tickUnits, hitUnits }: Grain): Fraction {
  return fraction(tickUnits, hitUnits * tickUs);
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
 * unit of the new limit or one more, from the next full tick on.
 */
function carriedOver(state: LevelModel, grain: Grain, nowUs: bigint): LevelModel[] {
  const stampUs = state.tick * state.grain.tickUs;
  const tick = ceilOf(fraction(later(stampUs, nowUs), grain.tickUs));
  const used = usedAt(state, nowUs);
  const units = ceilOf(times(used, grain.hitUnits));
  // Without a rest nothing is rounded.
  const rest = used.num % used.den !== 0n;
  return (rest ? [units, units + 1n] : [units]).map((rounded) => ({
    grain,
    tick,
    used: smaller(mostUsed(grain), fraction(rounded, grain.hitUnits)),
  }));
}

/** The state moved to now. With nothing used it is as good as new, whatever its stamp says. */
function settled(state: LevelModel, nowUs: bigint): LevelModel {
  const nowTick = nowUs / state.grain.tickUs;
  const used = reduced(usedAt(state, nowUs));
  return { grain: state.grain, tick: used.num === 0n ? nowTick : later(state.tick, nowTick), used };
}

/**
 * @param kept what stays stored when nothing is charged
 * @param start the state to judge
 */
function judge(kept: LevelModel | undefined, start: LevelModel, question: Question): OracleStep<LevelModel> {
  const { limit, nowUs, hits } = question;
  const current = settled(start, nowUs);
  const allowed = hits < 0n || fits(current, limit, nowUs, hits === 0n ? 1n : hits);
  const writes = hits < 0n ? current.used.num > 0n : hits > 0n && (allowed || limit.countDenied);
  const next = writes ? charged(current, allowed, question) : current;
  return { answer: answerOf(next, allowed, question), state: writes ? next : kept };
}

function fits(state: LevelModel, limit: OracleLimit, atUs: bigint, hits: bigint): boolean {
  return isAtMost(plus(usedAt(state, atUs), fraction(hits)), fraction(BigInt(limit.burst)));
}

/** The state with the hits taken, or given back. */
function charged(state: LevelModel, allowed: boolean, { hits }: Question): LevelModel {
  const raised = plus(state.used, fraction(hits));
  const bounded = allowed ? raised : larger(state.used, smaller(mostUsed(state.grain), raised));
  return { ...state, used: reduced(larger(ZERO, bounded)) };
}

function answerOf(state: LevelModel, allowed: boolean, { limit, nowUs, hits }: Question): OracleStep<never>["answer"] {
  const asked = hits === 0n ? 1n : hits;
  const capacity = BigInt(limit.burst);
  let retryAfterUs = 0n;
  if (!allowed) {
    retryAfterUs = asked > capacity ? -1n : earliest(nowUs, (atUs) => fits(state, limit, atUs, asked)) - nowUs;
  }
  const free = floorOf(minus(fraction(capacity), state.used));
  return {
    allowed,
    remaining: Number(free > 0n ? free : 0n),
    retryAfterUs: Number(retryAfterUs),
    resetAfterUs: Number(earliest(nowUs, (atUs) => usedAt(state, atUs).num === 0n) - nowUs),
    delayUs: 0,
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
