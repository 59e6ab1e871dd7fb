// Oracle for the weighted sliding window counter: hits of two aligned windows, and shares of them as exact fractions.
// Time passes in ticks, the finest of 1 us, 10 us, .. 1 s with which every number of the algorithm stays exact.
import { type Fraction, floorOf, fraction, isAtMost, minus, plus } from "./fraction.ts";
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

export interface PairModel {
  readonly periodUs: bigint;
  /** Number of the current window since 1970. */
  readonly window: bigint;
  readonly current: bigint;
  readonly previous: bigint;
}

export const slidingCounterOracle: Oracle<PairModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: (state, nowUs) => Number(earliest(BigInt(nowUs), (atUs) => isFresh(movedTo(state, atUs)))),
};

function ask(state: PairModel | undefined, limit: OracleLimit, nowUs: bigint, hits: bigint): OracleStep<PairModel> {
  const [most, periodUs] = [BigInt(limit.requestsPerUnit), BigInt(limit.periodUs)];
  const tickUs = tickOf(most, periodUs);
  const moved = movedTo(state ?? { periodUs, window: 0n, current: 0n, previous: 0n }, nowUs);
  const badClock = moved.window * periodUs - nowUs > TRUSTED_AHEAD_US;
  // What counted, counts: as hits of now.
  const start = badClock
    ? { periodUs, window: nowUs / periodUs, current: moved.current + moved.previous, previous: 0n }
    : moved;

  const asked = hits === 0n ? 1n : hits;
  const fits = (model: PairModel, atUs: bigint): boolean =>
    isAtMost(plus(usedAt(model, tickUs, atUs), fraction(asked)), fraction(most));
  const allowed = hits < 0n || fits(start, nowUs);
  let next = start;
  if (hits > 0n && (allowed || limit.countDenied)) {
    const bound = LARGEST_EXACT - start.previous;
    const current = start.current + hits;
    next = { ...start, current: current > bound ? bound : current };
  } else if (hits < 0n && !isFresh(start)) {
    const current = start.current + hits;
    const previous = current < 0n ? start.previous + current : start.previous;
    next = { ...start, current: current < 0n ? 0n : current, previous: previous < 0n ? 0n : previous };
  }

  let retryAfterUs = 0n;
  if (!allowed) retryAfterUs = asked > most ? -1n : earliest(nowUs, (atUs) => fits(next, atUs)) - nowUs;
  const free = floorOf(minus(fraction(most), usedAt(next, tickUs, nowUs)));
  return {
    answer: {
      allowed,
      remaining: Number(free > 0n ? free : 0n),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(earliest(nowUs, (atUs) => isFresh(movedTo(next, atUs))) - nowUs),
      delayUs: 0,
    },
    state: badClock || next !== start ? next : state,
  };
}

function tickOf(most: bigint, periodUs: bigint): bigint {
  for (let tickUs = 1n; tickUs <= 1_000_000n; tickUs *= 10n) {
    if (periodUs % tickUs === 0n && 3n * most * (periodUs / tickUs) <= LARGEST_EXACT) return tickUs;
  }
  throw new Error("no tick is coarse enough for this limit");
}

/** The windows that count once the clock shows `atUs`. The current one never goes back, unless nothing counts. */
function movedTo(model: PairModel, atUs: bigint): PairModel {
  const window = atUs / model.periodUs;
  if (window === model.window || (window < model.window && !isFresh(model))) return model;
  return { ...model, window, current: 0n, previous: window === model.window + 1n ? model.current : 0n };
}

/** What the sliding window holds: of the previous window, the share that it still covers. */
function usedAt(model: PairModel, tickUs: bigint, atUs: bigint): Fraction {
  const { periodUs, window, current, previous } = movedTo(model, atUs);
  const startUs = window * periodUs;
  const elapsed = atUs > startUs ? (atUs - startUs) / tickUs : 0n;
  const ticks = periodUs / tickUs;
  return plus(fraction(current), fraction(previous * (ticks - elapsed), ticks));
}

function isFresh({ current, previous }: PairModel): boolean {
  return current === 0n && previous === 0n;
}
