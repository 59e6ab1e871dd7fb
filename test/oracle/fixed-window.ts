// Oracle for fixed windows: the list of all charges of the current window, added up again for every question.
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

export interface WindowModel {
  readonly periodUs: bigint;
  /** Start of the window, microseconds since 1970. */
  readonly startUs: bigint;
  /** In order; negative ones were given back. */
  readonly charges: readonly bigint[];
}

export const fixedWindowOracle: Oracle<WindowModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: (state) => Number(state.startUs + state.periodUs),
};

function ask(state: WindowModel | undefined, limit: OracleLimit, nowUs: bigint, hits: bigint): OracleStep<WindowModel> {
  const capacity = BigInt(limit.requestsPerUnit);
  const { current, moved } = currentWindow(state, BigInt(limit.periodUs), nowUs);
  const used = totalCharged(current.charges);
  const asked = hits === 0n ? 1n : hits;

  let allowed = true;
  let charged = false;
  if (hits > 0n) {
    allowed = used + hits <= capacity;
    charged = allowed || limit.countDenied;
  } else if (hits === 0n) {
    allowed = used <= capacity;
  } else {
    charged = used > 0n;
  }
  const next = charged ? { ...current, charges: [...current.charges, hits] } : current;

  const endUs = next.startUs + next.periodUs;
  const usedAt = (atUs: bigint): bigint => (atUs >= endUs ? 0n : totalCharged(next.charges));
  let retryAfterUs = 0n;
  if (hits >= 0n && !(hits > 0n && allowed)) {
    retryAfterUs = asked > capacity ? -1n : earliest(nowUs, (atUs) => usedAt(atUs) + asked <= capacity) - nowUs;
  }
  const free = capacity - totalCharged(next.charges);
  return {
    answer: {
      allowed,
      remaining: Number(free > 0n ? free : 0n),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(endUs - nowUs),
      delayUs: 0,
    },
    state: charged || moved ? next : state,
  };
}

/** The window that counts now, and whether the stored one had to be moved because it is from a bad clock. */
function currentWindow(
  state: WindowModel | undefined,
  periodUs: bigint,
  nowUs: bigint,
): { current: WindowModel; moved: boolean } {
  const startUs = nowUs - (nowUs % periodUs);
  if (state === undefined || state.startUs < startUs)
    return { current: { periodUs, startUs, charges: [] }, moved: false };
  if (state.startUs - nowUs > TRUSTED_AHEAD_US) return { current: { ...state, startUs }, moved: true };
  return { current: state, moved: false };
}

/** Sum of the charges, never below 0 on the way. */
export function totalCharged(charges: readonly bigint[]): bigint {
  let sum = 0n;
  for (const charge of charges) {
    sum += charge;
    if (sum < 0n) sum = 0n;
    if (sum > LARGEST_EXACT) sum = LARGEST_EXACT;
  }
  return sum;
}
