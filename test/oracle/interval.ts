// Oracle for the token bucket that refills at intervals: whole tokens that were used, and when the interval began.
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

export interface IntervalModel {
  readonly intervalUs: bigint;
  /** Tokens that come back at the end of each interval. */
  readonly refill: bigint;
  /** When the interval began, microseconds since 1970. */
  readonly sinceUs: bigint;
  readonly used: bigint;
}

export const intervalOracle: Oracle<IntervalModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: (state, nowUs) => Number(earliest(BigInt(nowUs), (atUs) => movedTo(state, atUs).used === 0n)),
};

/** The counter once the clock shows `atUs`. Before its interval begins nothing happens. */
function movedTo(state: IntervalModel, atUs: bigint): IntervalModel {
  const passed = atUs > state.sinceUs ? (atUs - state.sinceUs) / state.intervalUs : 0n;
  const left = state.used - passed * state.refill;
  // A full bucket has no interval: the next one begins with the next hit.
  if (left <= 0n) return { ...state, sinceUs: atUs, used: 0n };
  return { ...state, sinceUs: state.sinceUs + passed * state.intervalUs, used: left };
}

function ask(
  state: IntervalModel | undefined,
  limit: OracleLimit,
  nowUs: bigint,
  hits: bigint,
): OracleStep<IntervalModel> {
  const [capacity, refill, intervalUs] = [limit.burst, limit.requestsPerUnit, limit.periodUs].map(BigInt) as [
    bigint,
    bigint,
    bigint,
  ];
  const badClock = state !== undefined && state.sinceUs - nowUs > TRUSTED_AHEAD_US;
  const trusted = badClock ? { ...state, sinceUs: nowUs } : state;
  const moved = movedTo(trusted ?? { intervalUs, refill, sinceUs: nowUs, used: 0n }, nowUs);
  // A raised limit takes the counter over at once, a lowered one with the next hit that is charged or given back.
  const raised = moved.refill < refill;
  const current = raised ? { ...moved, refill } : moved;
  const kept = raised ? current : trusted;

  const asked = hits === 0n ? 1n : hits;
  const fits = (model: IntervalModel, atUs: bigint): boolean => movedTo(model, atUs).used + asked <= capacity;
  const allowed = hits < 0n || fits(current, nowUs);
  const charges = hits < 0n ? current.used > 0n : hits > 0n && (allowed || limit.countDenied);
  const next = charges ? { ...current, refill, used: bounded(current.used + hits, refill, intervalUs) } : current;

  let retryAfterUs = 0n;
  if (!allowed) retryAfterUs = asked > capacity ? -1n : earliest(nowUs, (atUs) => fits(next, atUs)) - nowUs;
  return {
    answer: {
      allowed,
      remaining: Number(next.used < capacity ? capacity - next.used : 0n),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(earliest(nowUs, (atUs) => movedTo(next, atUs).used === 0n) - nowUs),
      delayUs: 0,
    },
    state: charges ? next : kept,
  };
}

/** Never below 0, and never more than comes back within 2^52 us, or than stays exact. */
function bounded(used: bigint, refill: bigint, intervalUs: bigint): bigint {
  const bounds = [LARGEST_EXACT, refill * (2n ** 52n / intervalUs), used];
  const least = bounds.reduce((a, b) => (a < b ? a : b));
  return least < 0n ? 0n : least;
}
