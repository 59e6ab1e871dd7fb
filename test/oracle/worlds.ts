// Whole requests against the oracles: several counters, several checks, both check modes. Where an oracle leaves more
// than one right answer open, every possible course of events (a world) is followed until an answer rules it out.
import type { AlgorithmName } from "../../src/core/limit-spec.ts";
import type { CheckMode } from "../../src/core/ports.ts";
import { fixedWindowOracle, type WindowModel } from "./fixed-window.ts";
import { type IntervalModel, intervalOracle } from "./interval.ts";
import { type LevelModel, levelOracle } from "./level.ts";
import type { Oracle, OracleAnswer, OracleLimit, OracleStep } from "./oracle.ts";
import { type SegmentsModel, segmentsOracle } from "./segments.ts";
import { type ShaperModel, shaperOracle } from "./shaper.ts";
import { type PairModel, slidingCounterOracle } from "./sliding-counter.ts";
import { type LogModel, slidingLogOracle } from "./sliding-log.ts";

export type CounterModel = (
  | { readonly kind: "window"; readonly state: WindowModel }
  | { readonly kind: "interval"; readonly state: IntervalModel }
  | { readonly kind: "level"; readonly state: LevelModel }
  | { readonly kind: "shaper"; readonly state: ShaperModel }
  | { readonly kind: "log"; readonly state: LogModel }
  | { readonly kind: "pair"; readonly state: PairModel }
  | { readonly kind: "segments"; readonly state: SegmentsModel }
) & {
  /** When it was last written, microseconds since 1970. */
  readonly writtenUs: number;
};

/** Counters by key. */
export type World = ReadonlyMap<string, CounterModel>;

export interface OracleCheck {
  readonly key: string;
  readonly algorithm: AlgorithmName;
  readonly limit: OracleLimit;
  readonly hits: number;
}

export const EMPTY_WORLD: World = new Map();

/** All worlds in which exactly these answers are right; none when the answers are wrong. */
export function worldsAfter(
  worlds: readonly World[],
  checks: readonly OracleCheck[],
  mode: CheckMode,
  nowUs: number,
  answers: readonly OracleAnswer[],
): World[] {
  const distinct = new Map<string, World>();
  for (const { world } of possibleSteps(worlds, checks, mode, nowUs, answers)) distinct.set(textOf(world), world);
  return [...distinct.values()];
}

/** The answers that one of the worlds would give, for messages. */
export function rightAnswers(
  worlds: readonly World[],
  checks: readonly OracleCheck[],
  mode: CheckMode,
  nowUs: number,
): readonly OracleAnswer[] {
  return possibleSteps(worlds, checks, mode, nowUs, undefined)[0]?.answers ?? [];
}

/** Microseconds since 1970 from which on the counter is as good as new, as far as was known when it was written. */
export function freshFromUs(counter: CounterModel): number {
  return Math.max(counter.writtenUs, freshUs(counter));
}

function freshUs(counter: CounterModel): number {
  switch (counter.kind) {
    case "window":
      return fixedWindowOracle.freshFromUs(counter.state, counter.writtenUs);
    case "interval":
      return intervalOracle.freshFromUs(counter.state, counter.writtenUs);
    case "level":
      return levelOracle.freshFromUs(counter.state, counter.writtenUs);
    case "shaper":
      return shaperOracle.freshFromUs(counter.state, counter.writtenUs);
    case "log":
      return slidingLogOracle.freshFromUs(counter.state, counter.writtenUs);
    case "pair":
      return slidingCounterOracle.freshFromUs(counter.state, counter.writtenUs);
    case "segments":
      return segmentsOracle.freshFromUs(counter.state, counter.writtenUs);
  }
}

/** The kind of counter that a limit keeps. */
function kindOf({ algorithm, limit }: OracleCheck): CounterModel["kind"] {
  if (algorithm === "fixed_window") return "window";
  if (algorithm === "leaky_bucket" && limit.maxDelayUs !== undefined) return "shaper";
  if (algorithm === "sliding_window_log") return "log";
  if (algorithm === "sliding_window_counter") return limit.segments === undefined ? "pair" : "segments";
  return algorithm === "token_bucket" && limit.refillIntervalUs !== undefined ? "interval" : "level";
}

export function without(world: World, key: string): World {
  const left = new Map(world);
  left.delete(key);
  return left;
}

interface Course {
  readonly world: World;
  readonly answers: readonly OracleAnswer[];
}

function possibleSteps(
  worlds: readonly World[],
  checks: readonly OracleCheck[],
  mode: CheckMode,
  nowUs: number,
  answers: readonly OracleAnswer[] | undefined,
): Course[] {
  return worlds.flatMap((world) => {
    const hitsOptions =
      mode === "each" ? [checks.map(({ hits }) => hits)] : sparedHits(world, checks, mode === "spare_refused", nowUs);
    return hitsOptions.flatMap((hits) => {
      let courses: Course[] = [{ world, answers: [] }];
      for (const [index, check] of checks.entries()) {
        courses = courses.flatMap((course) =>
          stepsOf(course.world, { ...check, hits: hits[index] ?? 0 }, nowUs)
            .filter(({ answer }) => answers === undefined || sameAnswer(answer, answers[index]))
            .map(({ answer, world: next }) => ({ world: next, answers: [...course.answers, answer] })),
        );
      }
      return courses;
    });
  });
}

/** Each check is first judged alone; if one would be refused, or something else was, those that would pass only look. */
function sparedHits(world: World, checks: readonly OracleCheck[], refusedAlready: boolean, nowUs: number): number[][] {
  let options: boolean[][] = [[]];
  for (const check of checks) {
    const possible = new Set(stepsOf(world, check, nowUs).map(({ answer }) => answer.allowed));
    options = options.flatMap((flags) => [...possible].map((allowed) => [...flags, allowed]));
  }
  return options.map((allowed) => {
    const anyRefused = refusedAlready || allowed.includes(false);
    return checks.map(({ hits }, index) => (anyRefused && allowed[index] === true && hits > 0 ? 0 : hits));
  });
}

function stepsOf(world: World, check: OracleCheck, nowUs: number): { answer: OracleAnswer; world: World }[] {
  const { key, limit, hits } = check;
  const counter = world.get(key);
  const kind = kindOf(check);
  if (counter !== undefined && counter.kind !== kind) throw new Error(`the key of a ${kind} holds a ${counter.kind}`);
  function steps<State>(
    oracle: Oracle<State>,
    state: State | undefined,
    counterOf: (state: State) => CounterModel,
  ): { answer: OracleAnswer; world: World }[] {
    return oracle.ask(state, limit, nowUs, hits).map((step) => kept(world, key, step, counterOf));
  }
  switch (kind) {
    case "window":
      return steps(fixedWindowOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "interval":
      return steps(intervalOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "level":
      return steps(levelOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "shaper":
      return steps(shaperOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "log":
      return steps(slidingLogOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "pair":
      return steps(slidingCounterOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
    case "segments":
      return steps(segmentsOracle, counter?.kind === kind ? counter.state : undefined, (state) => ({
        kind,
        state,
        writtenUs: nowUs,
      }));
  }
}

function kept<State>(
  world: World,
  key: string,
  { answer, state }: OracleStep<State>,
  counterOf: (state: State) => CounterModel,
): { answer: OracleAnswer; world: World } {
  if (state === undefined || world.get(key)?.state === state) return { answer, world };
  return { answer, world: new Map(world).set(key, counterOf(state)) };
}

function sameAnswer(a: OracleAnswer, b: OracleAnswer | undefined): boolean {
  return (
    b !== undefined &&
    a.allowed === b.allowed &&
    a.remaining === b.remaining &&
    a.retryAfterUs === b.retryAfterUs &&
    a.resetAfterUs === b.resetAfterUs &&
    a.delayUs === b.delayUs
  );
}

function textOf(world: World): string {
  const counters = [...world].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(counters, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
}
