// Oracle for the leaky bucket that shapes: the exact moment at which the next hit may leave, as a fraction of a tick.
// A hit leaves at that moment or now, whichever is later, and moves it on by the time between two hits.
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
} from "./fraction.ts";
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

export interface ShaperModel {
  readonly tickUs: bigint;
  /** Parts of a tick in which moments are held. */
  readonly tickParts: bigint;
  /** The tick at which the counter was last written. */
  readonly tick: bigint;
  /** From here on the next hit may leave, in ticks since 1970. */
  readonly free: Fraction;
}

export const shaperOracle: Oracle<ShaperModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: (state, nowUs) => Number(earliest(BigInt(nowUs), (atUs) => isIdle(state, atUs))),
};

/** How a limit measures. */
interface Pace {
  readonly tickUs: bigint;
  readonly tickParts: bigint;
  /** Ticks between two hits. */
  readonly gap: Fraction;
  readonly longestWait: bigint;
}

export function paceOf(limit: OracleLimit): Pace {
  const hits = BigInt(limit.requestsPerUnit);
  for (let tickUs = 1n; tickUs <= 1_000_000n; tickUs *= 10n) {
    if (BigInt(limit.periodUs) % tickUs !== 0n) continue;
    const ticks = BigInt(limit.periodUs) / tickUs;
    const divisor = greatestDivisor(hits, ticks);
    const [tickParts, hitParts] = [hits / divisor, ticks / divisor];
    const longestWait = BigInt(limit.maxDelayUs ?? 0) / tickUs;
    if (2n * (longestWait * tickParts + hitParts) + tickParts > LARGEST_EXACT) continue;
    return { tickUs, tickParts, gap: fraction(hitParts, tickParts), longestWait };
  }
  throw new Error("no tick is coarse enough for this limit");
}

/** The tick from which waits count: the clock's, but never before the counter's own. */
function startTick(state: ShaperModel, atUs: bigint): bigint {
  return later(atUs / state.tickUs, state.tick);
}

function later(a: bigint, b: bigint): bigint {
  if (a < b) return b;
  return a;
}

function isIdle(state: ShaperModel, atUs: bigint): boolean {
  return isAtMost(state.free, fraction(startTick(state, atUs)));
}

function ask(state: ShaperModel | undefined, limit: OracleLimit, nowUs: bigint, hits: bigint): OracleStep<ShaperModel> {
  const pace = paceOf(limit);
  const badClock = state !== undefined && state.tick * state.tickUs - nowUs > TRUSTED_AHEAD_US;
  const kept = badClock ? withStamp(state, nowUs / state.tickUs) : state;
  const fresh = idleAt(pace, nowUs);
  const stored = kept === undefined ? fresh : inUnitsOf(kept, pace);
  // With nobody waiting it is as good as new, whatever its stamp says.
  const current = isIdle(stored, nowUs) ? fresh : stored;
  const asked = hits === 0n ? 1n : hits;

  const allowed = hits < 0n || passes(current, pace, nowUs, asked);
  const charges = hits < 0n ? !isIdle(current, nowUs) : hits > 0n && (allowed || limit.countDenied);
  const next = charges ? charged(current, pace, nowUs, hits, allowed) : current;

  const most = mostHits(pace);
  let retryAfterUs = 0n;
  if (!allowed) {
    retryAfterUs = asked > most ? -1n : earliest(nowUs, (atUs) => passes(next, pace, atUs, asked)) - nowUs;
  }
  return {
    answer: {
      allowed,
      remaining: Number(remaining(next, pace, nowUs, most)),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(earliest(nowUs, (atUs) => isIdle(next, atUs)) - nowUs),
      delayUs: allowed && hits >= 0n ? Number(delayUs(current, pace, nowUs)) : 0,
    },
    state: charges ? next : kept,
  };
}

function idleAt({ tickUs, tickParts }: Pace, nowUs: bigint): ShaperModel {
  const tick = nowUs / tickUs;
  return { tickUs, tickParts, tick, free: fraction(tick) };
}

/** The counter of a bad clock, with the same wait from now on. */
function withStamp(state: ShaperModel, tick: bigint): ShaperModel {
  return { ...state, tick, free: plus(state.free, fraction(tick - state.tick)) };
}

/** The moment stays the same when the rate changes, rounded up to a tick. */
function inUnitsOf(state: ShaperModel, { tickUs, tickParts }: Pace): ShaperModel {
  if (state.tickUs === tickUs && state.tickParts === tickParts) return state;
  const { num, den } = times(state.free, state.tickUs);
  const free = fraction(ceilOf(fraction(num, den * tickUs)));
  return { tickUs, tickParts, tick: (state.tick * state.tickUs) / tickUs, free };
}

/** The last of the hits leaves at the end of the longest wait, or before. */
function passes(state: ShaperModel, { gap, longestWait }: Pace, atUs: bigint, hits: bigint): boolean {
  const start = startTick(state, atUs);
  const last = plus(larger(state.free, fraction(start)), times(gap, hits - 1n));
  return isAtMost(last, fraction(start + longestWait));
}

/** From the clock's time, or the counter's own where the clock is behind it. */
function delayUs(state: ShaperModel, { tickUs }: Pace, nowUs: bigint): bigint {
  if (isIdle(state, nowUs)) return 0n;
  return ceilOf(state.free) * tickUs - later(state.tick * tickUs, nowUs);
}

function charged(state: ShaperModel, pace: Pace, nowUs: bigint, hits: bigint, allowed: boolean): ShaperModel {
  const start = startTick(state, nowUs);
  const latest = fraction(start + mostTicks(pace));
  const moved = plus(smaller(larger(state.free, fraction(start)), latest), times(pace.gap, hits));
  const free = larger(fraction(start), allowed ? moved : smaller(moved, latest));
  return { tickUs: pace.tickUs, tickParts: pace.tickParts, tick: start, free: reduced(free) };
}

/** Beyond, the numbers would not be exact, or the wait would be longer than 2^52 us. */
function mostTicks({ tickUs, tickParts }: Pace): bigint {
  const [exact, longest] = [(LARGEST_EXACT - tickParts) / tickParts, 2n ** 52n / tickUs];
  return exact < longest ? exact : longest;
}

/** The most hits that an idle counter lets pass at once. */
export function mostHits({ gap, longestWait }: Pace): bigint {
  return 1n + floorOf(fraction(longestWait * gap.den, gap.num));
}

/** The largest number of hits that passes now, tried ever closer. */
function remaining(state: ShaperModel, pace: Pace, nowUs: bigint, most: bigint): bigint {
  let [fits, tooMany] = [0n, most + 1n];
  while (tooMany - fits > 1n) {
    const middle = (fits + tooMany) / 2n;
    if (passes(state, pace, nowUs, middle)) fits = middle;
    else tooMany = middle;
  }
  return fits;
}

/** Until the next hit may leave, counted from the counter's own tick, in parts of one. */
export function waitParts({ tick, tickParts, free }: ShaperModel): Fraction {
  return times(minus(free, fraction(tick)), tickParts);
}
