// What an oracle is: a slow, obviously right model of an algorithm, written from its description in whole numbers and
// fractions of any size. It shares no code with src/ and finds waiting times by trying times, not by a formula.

/** The part of a limit that decides. */
export interface OracleLimit {
  readonly requestsPerUnit: number;
  readonly periodUs: number;
  readonly burst: number;
  readonly countDenied: boolean;
  readonly maxDelayUs?: number | undefined;
  readonly refillIntervalUs?: number | undefined;
  readonly segments?: number | undefined;
}

export interface OracleAnswer {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retryAfterUs: number;
  readonly resetAfterUs: number;
  readonly delayUs: number;
}

export interface OracleStep<State> {
  readonly answer: OracleAnswer;
  /** The counter afterwards: the very object that came in when nothing may be written. */
  readonly state: State | undefined;
}

export interface Oracle<State> {
  /**
   * Every right answer to `hits` at `nowUs`: one, except when a changed limit leaves the rounding of the used part open.
   *
   * @param state `undefined` for a counter that was never touched
   */
  ask(state: State | undefined, limit: OracleLimit, nowUs: number, hits: number): readonly OracleStep<State>[];
  /** Microseconds since 1970 from which on the counter is as good as new. */
  freshFromUs(state: State, nowUs: number): number;
}

/** Clocks may step back this far and a stamp still counts; one further ahead is from a bad clock. */
export const TRUSTED_AHEAD_US = 5_000_000n;

export const LARGEST_EXACT = 2n ** 53n - 1n;

/** The first microsecond from `from` on at which `holds`, which stays true once it is. Tries times, ever closer. */
export function earliest(from: bigint, holds: (atUs: bigint) => boolean): bigint {
  if (holds(from)) return from;
  let reach = 1n;
  while (!holds(from + reach)) reach *= 2n;
  let tooEarly = from + reach / 2n;
  let late = from + reach;
  if (reach === 1n) return late;
  while (late - tooEarly > 1n) {
    const middle = (late + tooEarly) / 2n;
    if (holds(middle)) late = middle;
    else tooEarly = middle;
  }
  return late;
}
