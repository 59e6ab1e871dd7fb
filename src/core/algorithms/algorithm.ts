// What every algorithm is: deterministic arithmetic with nothing else in it. Each has a Lua twin of the same base name
// in lua/ that takes the same parameters in the same order and does the same operations on the same doubles.
import type { Decision } from "../decision.ts";
import type { AlgorithmName, LimitSpec } from "../limit-spec.ts";

/** Each algorithm has its own; stores only keep and copy them. */
export type AlgorithmState = object;

/** The algorithm's numbers for one limit, in the order that both twins read them. */
export type Params = readonly number[];

/** The numbers of a limit, or why this algorithm cannot enforce it exactly. */
export type Compiled = { readonly params: Params } | { readonly problem: string };

/** What lua/ registers: the algorithms of rules, and forms of them that keep a state of another kind. */
export type HandlerName =
  | AlgorithmName
  | "leaky_bucket.shaper"
  | "sliding_window_counter.segments"
  | "token_bucket.interval";

export interface Algorithm<State extends AlgorithmState = AlgorithmState> {
  readonly name: HandlerName;
  /** The shape of the state, as counter keys name it; the algorithm's name where absent. Other shapes start anew. */
  shape?(spec: LimitSpec): string;
  compile(spec: LimitSpec): Compiled;
  /** The state of a counter that was never touched. */
  init(): State;
  /** A state of its own with the same content. Absent where a copy of the fields does: `step` changes nothing inside them. */
  copy?(state: State): State;
  /**
   * Judges `hits` at `nowUs`, changes `state` accordingly and fills `out`.
   *
   * @param hits 0 looks and charges nothing; negative gives back, always passes, and never makes a counter
   * @returns whether `state` changed and must be kept
   */
  step(state: State, params: Params, nowUs: number, hits: number, out: Decision): boolean;
  /** Microseconds after which the state is as good as `init()`, counted from `nowUs`. */
  ttlUs(state: State, params: Params, nowUs: number): number;
}

/** A stamp further ahead of the clock than this is from a bad clock and is set back to now. Microseconds. */
export const MAX_AHEAD_US = 5_000_000;

/** Longest period, and longest time to refill: 2^52 us, some 142 years, so that now + period stays exact. */
export const MAX_PERIOD_US = 2 ** 52;
