// Plays a history on a store in TypeScript and on Redis at the same given times, and holds both against the oracles:
// equal in every field of every answer, and in the bytes that Redis keeps at the end.
import { expect } from "vitest";
import { type Decision, newDecision } from "../../src/core/decision.ts";
import type { Limit } from "../../src/core/limit.ts";
import type { Check, CheckMode, Store } from "../../src/core/ports.ts";
import { capacityOf } from "../oracle/capacity.ts";
import { OracleFollower } from "../oracle/follower.ts";
import { EMPTY_WORLD, freshFromUs, type OracleCheck, type World } from "../oracle/worlds.ts";
import { type FakeClock, START_US } from "../support/fake-clock.ts";
import { makeLimit } from "../support/make-limit.ts";
import { type OpenRedisStore, randomPrefix } from "../support/redis-store.ts";
import type { History, Move, RelativeHits, Step } from "./history.ts";
import { keptText, stateText } from "./state-bytes.ts";

/** Redis and its clock, which the replay sets. */
export interface RedisSide extends OpenRedisStore {
  readonly clock: FakeClock;
}

export interface ReplayOptions {
  /** The TypeScript side. */
  readonly open: (clock: FakeClock) => Store;
  /** Counters disappear on all sides as soon as they may, as if each expiry came at the first possible moment. */
  readonly expireEarly: boolean;
}

/** Counters live this much longer than they must. */
const SLACK_US = 1_000_000;
/** Histories stay within 1970 and 2096, where all numbers are exact. */
const EARLIEST_US = 10_000_000_000_000;
const LATEST_US = 4_000_000_000_000_000;
/** After this long Redis, whose expiry runs on real time, might have dropped a counter by itself. */
const LONGEST_REPLAY_MS = 500;
const ATTEMPTS = 20;

export async function replay(history: History, redis: RedisSide, options: ReplayOptions): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const startMs = performance.now();
    const run = new Replay(history, redis, options);
    await run.play();
    const kept = await run.readKept();
    const tookMs = performance.now() - startMs;
    // Else the machine stalled, and nothing can be said about counters that may have expired meanwhile.
    if (tookMs > LONGEST_REPLAY_MS) continue;
    run.verifyAnswers();
    run.verifyKept(kept, tookMs);
    return;
  }
  throw new Error(`${ATTEMPTS} replays took more than ${LONGEST_REPLAY_MS} ms each`);
}

/** What Redis holds at a key. */
interface Kept {
  readonly bytes: Buffer | null;
  readonly ttlMs: number;
}

class Replay {
  readonly #prefix = randomPrefix();
  readonly #redis: RedisSide;
  readonly #store: Store;
  readonly #steps: readonly Step[];
  readonly #limits: readonly (readonly Limit[])[];
  readonly #expireEarly: boolean;
  readonly #replies: Promise<unknown>[] = [];
  readonly #answers: { readonly asked: string; readonly ours: Decision[]; readonly theirs: Decision[] }[] = [];
  readonly #lastOf = new Map<string, Decision>();
  #last = newDecision();
  readonly #oracle = new OracleFollower();

  constructor(history: History, redis: RedisSide, { open, expireEarly }: ReplayOptions) {
    redis.clock.set(START_US);
    this.#redis = redis;
    this.#store = open(redis.clock);
    this.#limits = history.counters.map(({ limits }) => limits.map(makeLimit));
    this.#steps = [...history.steps, ...closingLooks(history.counters.length)];
    this.#expireEarly = expireEarly;
  }

  async play(): Promise<void> {
    try {
      for (const step of this.#steps) await this.#play(step);
    } finally {
      await Promise.all(this.#replies);
    }
  }

  async #play(step: Step): Promise<void> {
    const { clock } = this.#redis;
    clock.set(moved(clock.nowUs(), step.move, this.#last));
    if (this.#expireEarly) this.#expire(clock.nowUs());
    const checks = step.checks.map((check) => this.#checkOf(check));
    const ours = checks.map(newDecision);
    const theirs = checks.map(newDecision);
    await this.#store.evaluate(checks, step.mode, ours, Number.POSITIVE_INFINITY);
    this.#replies.push(
      Promise.resolve(this.#redis.store.evaluate(checks, step.mode, theirs, Number.POSITIVE_INFINITY)),
    );
    // The store sends at the end of the turn, with the time of then; the replies are awaited later, all at once.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [index, { key }] of checks.entries()) {
      this.#last = ours[index] ?? this.#last;
      this.#lastOf.set(key, this.#last);
    }
    this.#answers.push({ asked: describe(clock.nowUs(), step.mode, checks), ours, theirs });
    this.#followOracle(checks, step.mode, ours);
  }

  #checkOf({ counter, limit, hits }: Step["checks"][number]): Check {
    const at = counter % this.#limits.length;
    const limits = this.#limits[at] ?? [];
    const chosen = limits[limit % limits.length];
    if (chosen === undefined) throw new Error("a counter has no limit");
    const key = `${this.#prefix}${at}`;
    return { key, limit: chosen, hits: hitsOf(hits, chosen, this.#lastOf.get(key)) };
  }

  #expire(nowUs: number): void {
    for (const key of new Set(this.#oracle.worlds.flatMap((world) => [...world.keys()]))) {
      const expiries = this.#oracle.worlds.flatMap((world) => {
        const counter = world.get(key);
        return counter === undefined ? [] : [freshFromUs(counter) + SLACK_US];
      });
      if (Math.min(...expiries) > nowUs) continue;
      this.#store.reset(key);
      this.#replies.push(Promise.resolve(this.#redis.store.reset(key)));
      this.#oracle.forget(key);
    }
  }

  #followOracle(checks: readonly Check[], mode: CheckMode, ours: readonly Decision[]): void {
    const nowUs = this.#redis.clock.nowUs();
    const questions = checks.map(
      ({ key, limit, hits }): OracleCheck => ({ key, algorithm: limit.algorithm, limit, hits }),
    );
    this.#oracle.follow(questions, mode, nowUs, ours, describe(nowUs, mode, checks));
  }

  /** Reads what Redis keeps, before anything is judged. */
  async readKept(): Promise<Map<string, Kept>> {
    const kept = new Map<string, Kept>();
    for (const at of this.#limits.keys()) {
      const key = `${this.#prefix}${at}`;
      const [bytes, ttlMs] = await Promise.all([this.#redis.client.getBuffer(key), this.#redis.client.pttl(key)]);
      kept.set(key, { bytes, ttlMs });
    }
    return kept;
  }

  verifyAnswers(): void {
    for (const { asked, ours, theirs } of this.#answers) {
      for (const [index, decision] of ours.entries()) {
        // Comparing by hand first: there are thousands.
        if (!sameDecision(decision, theirs[index])) expect(theirs, `Lua against TypeScript: ${asked}`).toEqual(ours);
      }
    }
  }

  /** @param tookMs an upper bound on how long ago, in real time, anything was written */
  verifyKept(kept: ReadonlyMap<string, Kept>, tookMs: number): void {
    const rightIn = (world: World): string[] =>
      [...kept.keys()].map((key) => {
        const counter = world.get(key);
        return counter === undefined ? "nothing" : stateText(counter);
      });
    const foundIn = (world: World): string[] =>
      [...kept].map(([key, { bytes }]) => (bytes === null ? "nothing" : keptText(bytes, world.get(key))));
    const matching = this.#oracle.worlds.filter((world) => rightIn(world).join("|") === foundIn(world).join("|"));
    const [first = EMPTY_WORLD] = this.#oracle.worlds;
    if (matching.length === 0) expect(foundIn(first), "kept in Redis").toEqual(rightIn(first));
    for (const [key, { ttlMs }] of kept) {
      const livesMs = matching.flatMap((world) => {
        const counter = world.get(key);
        return counter === undefined ? [] : [(freshFromUs(counter) - counter.writtenUs) / 1_000];
      });
      if (livesMs.length === 0) continue;
      expect(ttlMs + tookMs, "expiry comes too early").toBeGreaterThanOrEqual(Math.min(...livesMs));
      expect(ttlMs, "expiry comes too late").toBeLessThanOrEqual(Math.ceil(Math.max(...livesMs)) + SLACK_US / 1_000);
    }
  }
}

/** Looks at every counter a few times at the end, so that a wrong state shows even where an answer did not. */
function closingLooks(counters: number): Step[] {
  const checks = Array.from({ length: counters }, (_, counter) => ({ counter, limit: 0, hits: 0 }));
  return [0, 1, 12_345_678].map((by) => ({ move: { by }, mode: "each", checks }));
}

function moved(nowUs: number, move: Move, last: Decision): number {
  const byUs = "by" in move ? move.by : promisedUs(move, last);
  return Math.min(LATEST_US, Math.max(EARLIEST_US, nowUs + byUs));
}

function promisedUs({ to, plus }: Extract<Move, { to: unknown }>, last: Decision): number {
  return Math.max(0, to === "retry" ? last.retryAfterUs : last.resetAfterUs) + plus;
}

function hitsOf(hits: number | RelativeHits, limit: Limit, last: Decision | undefined): number {
  if (typeof hits === "number") return hits;
  const capacity = capacityOf(limit);
  return (hits.of === "capacity" ? capacity : (last?.remaining ?? capacity)) + hits.plus;
}

function sameDecision(a: Decision, b: Decision | undefined): boolean {
  return (
    a.allowed === b?.allowed &&
    a.remaining === b.remaining &&
    a.retryAfterUs === b.retryAfterUs &&
    a.resetAfterUs === b.resetAfterUs &&
    a.delayUs === b.delayUs
  );
}

function describe(nowUs: number, mode: CheckMode, checks: readonly Check[]): string {
  const parts = checks.map(
    ({ key, limit, hits }) => `${hits} of ${key} (${limit.handler.name} ${limit.params.join(" ")})`,
  );
  return `at ${nowUs}, ${mode}: ${parts.join(", ")}`;
}
