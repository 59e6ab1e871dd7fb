// The answer to one check.

/** What a store says of one check. Mutable, because stores fill decisions that the limiter made. */
export interface Decision {
  allowed: boolean;
  /** Largest number of hits that would pass right now. */
  remaining: number;
  /** Microseconds until the same hits would pass if nobody else came; 0 when they did, -1 when they never can. */
  retryAfterUs: number;
  /** Microseconds until the counter is as good as new. */
  resetAfterUs: number;
}

export function newDecision(): Decision {
  return { allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: 0 };
}
