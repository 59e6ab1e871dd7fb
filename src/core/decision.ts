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
  /**
   * Microseconds that what passes should wait before it goes on; a look tells what one hit would be told. weir never
   * waits itself. 0 unless the algorithm shapes traffic: the others need not fill it.
   */
  delayUs: number;
}

export function newDecision(): Decision {
  return { allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: 0, delayUs: 0 };
}
