// What every store must do, whatever it is made of. Each store runs the whole suite; tests of what only one of them
// does stand in files of their own.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HandlerName } from "../../src/core/algorithms/algorithm.ts";
import { MAX_LOG_LIMIT } from "../../src/core/algorithms/sliding-log.ts";
import { type Decision, newDecision } from "../../src/core/decision.ts";
import type { Limit } from "../../src/core/limit.ts";
import type { Check, CheckMode, Store } from "../../src/core/ports.ts";
import { FakeClock, START_US } from "../support/fake-clock.ts";
import { HOUR, MINUTE, makeLimit, SECOND } from "../support/make-limit.ts";
import { randomPrefix } from "../support/redis-store.ts";

export interface StoreUnderTest {
  readonly store: Store;
  /** Another client of the same counters. */
  another(): Promise<Store>;
  /** How many counters the store holds whose keys begin with the prefix it was opened for. */
  counters(): Promise<number>;
  /** Ends the store and everything that was opened with it. */
  close(): Promise<void>;
}

/** Opens a store that uses `clock` and is asked for keys that begin with `prefix`. */
export type OpenStore = (clock: FakeClock, prefix: string) => Promise<StoreUnderTest>;

/** Of each algorithm and form, a limit that lets so many hits come at once. */
const LIMITS: Readonly<Record<HandlerName, (hits: number) => Limit>> = {
  fixed_window: (hits) => makeLimit({ algorithm: "fixed_window", requestsPerUnit: hits, periodUs: HOUR }),
  gcra: (hits) => makeLimit({ algorithm: "gcra", requestsPerUnit: hits, periodUs: HOUR }),
  leaky_bucket: (hits) => makeLimit({ algorithm: "leaky_bucket", requestsPerUnit: hits, periodUs: HOUR }),
  // One a second, and all may wait but the first.
  "leaky_bucket.shaper": (hits) =>
    makeLimit({
      algorithm: "leaky_bucket",
      requestsPerUnit: hits,
      periodUs: hits * SECOND,
      maxDelayUs: (hits - 1) * SECOND,
    }),
  sliding_window_counter: (hits) =>
    makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: hits, periodUs: HOUR }),
  "sliding_window_counter.segments": (hits) =>
    makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: hits, periodUs: HOUR, segments: 6 }),
  sliding_window_log: (hits) => makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: hits, periodUs: HOUR }),
  token_bucket: (hits) => makeLimit({ algorithm: "token_bucket", requestsPerUnit: hits, periodUs: HOUR }),
  "token_bucket.interval": (hits) =>
    makeLimit({ algorithm: "token_bucket", requestsPerUnit: hits, periodUs: HOUR, refillIntervalUs: HOUR }),
};

export interface ContractKeys {
  readonly prefix?: string;
  /** The checks of a request may lie on several servers, so that it is not one step for all clients. */
  readonly apart?: boolean;
}

export function storeContract(name: string, open: OpenStore, keys: ContractKeys = {}): void {
  describe(`${name} keeps the store contract`, () => {
    const clock = new FakeClock();
    const { prefix = randomPrefix(), apart = false } = keys;
    let counter = 0;
    let opened: StoreUnderTest;
    let store: Store;
    let key = "";
    let other = "";

    beforeAll(async () => {
      opened = await open(clock, prefix);
      store = opened.store;
    });
    afterAll(() => opened.close());

    /** Counters that no other test touches. */
    const fresh = (): void => {
      counter += 1;
      key = `${prefix}${counter}:key`;
      other = `${prefix}${counter}:other`;
    };
    /** How many counters came or went (negative) with an action. */
    const made = async (action: () => Promise<unknown>): Promise<number> => {
      const before = await opened.counters();
      await action();
      return (await opened.counters()) - before;
    };

    for (const [name, of] of Object.entries(LIMITS)) {
      describe(name, () => {
        it("never lets a burst pass the limit", async () => {
          fresh();
          const limit = of(5);
          const passed: boolean[] = [];
          for (let hit = 0; hit < 8; hit++) passed.push((await ask(store, { key, limit, hits: 1 })).allowed);
          expect(passed).toEqual([true, true, true, true, true, false, false, false]);
        });

        it("lets no request pass that is larger than what is left", async () => {
          fresh();
          const limit = of(5);
          expect(await ask(store, { key, limit, hits: 6 })).toMatchObject({ allowed: false, retryAfterUs: -1 });
          expect(await ask(store, { key: other, limit, hits: 3 })).toMatchObject({ allowed: true, remaining: 2 });
          expect(await ask(store, { key: other, limit, hits: 3 })).toMatchObject({ allowed: false });
        });

        it("counts nothing and makes no counter when hits is 0", async () => {
          fresh();
          const limit = of(5);
          const look = () => ask(store, { key, limit, hits: 0 });
          expect(await look()).toMatchObject({ allowed: true, remaining: 5 });
          expect(await made(look)).toBe(0);
          await ask(store, { key, limit, hits: 2 });
          const first = await ask(store, { key, limit, hits: 0 });
          expect(first).toMatchObject({ allowed: true, remaining: 3 });
          expect(await ask(store, { key, limit, hits: 0 })).toEqual(first);
        });

        it("makes no counter when hits are given back to none, and never holds more than the limit", async () => {
          fresh();
          const limit = of(5);
          const giveBack = () => ask(store, { key, limit, hits: -3 });
          expect(await giveBack()).toMatchObject({ allowed: true, remaining: 5 });
          expect(await made(giveBack)).toBe(0);
          await ask(store, { key, limit, hits: 2 });
          expect(await ask(store, { key, limit, hits: -1 })).toMatchObject({ allowed: true, remaining: 4 });
          expect(await ask(store, { key, limit, hits: -Number.MAX_SAFE_INTEGER })).toMatchObject({ remaining: 5 });
          expect(await ask(store, { key, limit, hits: 5 })).toMatchObject({ allowed: true, remaining: 0 });
        });

        it("lets hits that were given back pass again, also when nothing was left", async () => {
          fresh();
          const limit = of(3);
          await ask(store, { key, limit, hits: 3 });
          expect(await ask(store, { key, limit, hits: -1 })).toMatchObject({ allowed: true, remaining: 1 });
          expect(await ask(store, { key, limit, hits: 1 })).toMatchObject({ allowed: true, remaining: 0 });
        });

        it("answers a split request like a whole one", async () => {
          fresh();
          const limit = of(10);
          for (const hits of [1, 2, 3]) await ask(store, { key, limit, hits });
          await ask(store, { key: other, limit, hits: 6 });
          const whole = await ask(store, { key: other, limit, hits: 0 });
          expect(await ask(store, { key, limit, hits: 0 })).toEqual(whole);
          expect(whole).toMatchObject({ allowed: true, remaining: 4 });
        });

        it("answers the checks of a request in order: the second on one key sees the first", async () => {
          fresh();
          const limit = of(5);
          const decisions = await askAll(store, [
            { key, limit, hits: 2 },
            { key: other, limit, hits: 1 },
            { key, limit, hits: 3 },
            { key, limit, hits: 1 },
          ]);
          expect(decisions.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
            [true, 3],
            [true, 4],
            [true, 0],
            [false, 0],
          ]);
        });

        it("takes hits beyond 2^32, up to the largest exact number", async () => {
          fresh();
          const limit = of(10);
          for (const hits of [2 ** 32, 2 ** 32 + 1, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
            expect(await ask(store, { key, limit, hits })).toMatchObject({
              allowed: false,
              remaining: limit.algorithm === "fixed_window" ? 0 : 10,
              retryAfterUs: -1,
            });
          }
        });

        it("holds the largest limit exactly", async () => {
          fresh();
          const largest = name === "sliding_window_log" ? MAX_LOG_LIMIT : 2 ** 32 - 1;
          const limit = of(largest);
          expect(await ask(store, { key, limit, hits: largest - 1 })).toMatchObject({ allowed: true, remaining: 1 });
          expect(await ask(store, { key, limit, hits: 2 })).toMatchObject({ allowed: false });
        });

        it("forgets a counter that is reset", async () => {
          fresh();
          const limit = of(2);
          await ask(store, { key, limit, hits: 2 });
          await ask(store, { key: other, limit, hits: 2 });
          expect(await made(async () => store.reset(key))).toBe(-1);
          expect(await ask(store, { key, limit, hits: 2 })).toMatchObject({ allowed: true, remaining: 0 });
          expect(await ask(store, { key: other, limit, hits: 1 })).toMatchObject({ allowed: false });
          await store.reset(`${key}-never-used`);
        });

        it("lets exactly the limit pass when many clients press at once", async () => {
          fresh();
          const limit = of(100);
          const clients = await Promise.all(Array.from({ length: 4 }, () => opened.another()));
          const answers = await Promise.all(
            clients.flatMap((client) => Array.from({ length: 30 }, () => ask(client, { key, limit, hits: 3 }))),
          );
          expect(answers.filter(({ allowed }) => allowed)).toHaveLength(33);
          // No two that passed were told the same.
          const left = answers.filter(({ allowed }) => allowed).map(({ remaining }) => remaining);
          expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 33 }, (_, index) => 1 + index * 3));
        });
      });
    }

    it("answers a request without checks", async () => {
      await store.evaluate([], "each", [], 1_000);
      await store.evaluate([], "spare", [], 1_000);
    });

    it("answers many checks of one request", async () => {
      fresh();
      const limit = makeLimit({ algorithm: "gcra", requestsPerUnit: 1_000, periodUs: HOUR });
      const checks = Array.from({ length: 1_000 }, (): Check => ({ key, limit, hits: 1 }));
      const decisions = await askAll(store, checks);
      expect(decisions.map(({ remaining }) => remaining)).toEqual(checks.map((_, index) => 999 - index));
    });

    describe("sparing the companions of a refused check", () => {
      const limit = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 2, periodUs: MINUTE });
      const roomy = makeLimit({ algorithm: "gcra", requestsPerUnit: 10, periodUs: MINUTE });

      it("charges all when all pass", async () => {
        fresh();
        const decisions = await spare([
          { key, limit, hits: 1 },
          { key: other, limit: roomy, hits: 2 },
        ]);
        expect(decisions).toMatchObject([
          { allowed: true, remaining: 1 },
          { allowed: true, remaining: 8 },
        ]);
      });

      it("charges the refused check alone when one is refused, wherever it stands", async () => {
        fresh();
        await ask(store, { key, limit, hits: 2 });
        const refusedFirst = await spare([
          { key, limit, hits: 1 },
          { key: other, limit: roomy, hits: 2 },
        ]);
        expect(refusedFirst).toMatchObject([
          { allowed: false, remaining: 0 },
          { allowed: true, remaining: 10 },
        ]);
        let refusedLast: Decision[] = [];
        const makes = await made(async () => {
          refusedLast = await spare([
            { key: other, limit: roomy, hits: 2 },
            { key, limit, hits: 1 },
          ]);
        });
        expect(refusedLast).toMatchObject([
          { allowed: true, remaining: 10 },
          { allowed: false, remaining: 0 },
        ]);
        expect(makes).toBe(0);
        // 2 + 1 + 1 were counted: two must be given back before one more passes.
        expect(await ask(store, { key, limit, hits: -2 })).toMatchObject({ remaining: 0 });
        expect(await ask(store, { key, limit, hits: -1 })).toMatchObject({ remaining: 1 });
      });

      it("gives back and looks as always, and a single check is charged as always", async () => {
        fresh();
        await ask(store, { key, limit, hits: 2 });
        await ask(store, { key: other, limit: roomy, hits: 5 });
        const decisions = await spare([
          { key, limit, hits: 1 },
          { key: other, limit: roomy, hits: -2 },
        ]);
        expect(decisions).toMatchObject([{ allowed: false }, { allowed: true, remaining: 7 }]);
        expect(await spare([{ key: other, limit: roomy, hits: 1 }])).toMatchObject([{ allowed: true, remaining: 6 }]);
      });

      it("charges only what is refused when something else has refused already", async () => {
        fresh();
        await ask(store, { key, limit, hits: 2 });
        const checks = [
          { key: other, limit: roomy, hits: 2 },
          { key, limit, hits: 1 },
          { key: other, limit: roomy, hits: 11 },
        ];
        const decisions = await askAll(store, checks, "spare_refused");
        expect(decisions.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
          [true, 10],
          [false, 0],
          [false, 10],
        ]);
        expect(await askAll(store, [{ key: other, limit: roomy, hits: 4 }], "spare_refused")).toMatchObject([
          { allowed: true, remaining: 10 },
        ]);
        // 2 + 1 were counted by the window.
        expect(await ask(store, { key, limit, hits: -1 })).toMatchObject({ remaining: 0 });
        expect(await ask(store, { key, limit, hits: -1 })).toMatchObject({ remaining: 1 });
      });

      it("is one step for all clients: a companion is charged exactly as often as its check passed", async () => {
        fresh();
        const clients = await Promise.all(Array.from({ length: 4 }, () => opened.another()));
        const requests = clients.flatMap((client) =>
          Array.from({ length: 10 }, () =>
            askAll(
              client,
              [
                { key, limit, hits: 1 },
                { key: other, limit: roomy, hits: 1 },
              ],
              "spare",
            ),
          ),
        );
        const passed = (await Promise.all(requests)).filter(([first]) => first?.allowed === true);
        expect(passed).toHaveLength(2);
        const { remaining } = await ask(store, { key: other, limit: roomy, hits: 0 });
        if (apart) expect(remaining).toBeLessThanOrEqual(8);
        else expect(remaining).toBe(8);
      });

      const spare = (checks: readonly Check[]): Promise<Decision[]> => askAll(store, checks, "spare");
    });

    describe("a changed limit", () => {
      it("keeps the count of a window", async () => {
        fresh();
        const window = (requestsPerUnit: number): Limit =>
          makeLimit({ algorithm: "fixed_window", requestsPerUnit, periodUs: MINUTE });
        await ask(store, { key, limit: window(10), hits: 7 });
        expect(await ask(store, { key, limit: window(8), hits: 0 })).toMatchObject({ allowed: true, remaining: 1 });
        expect(await ask(store, { key, limit: window(5), hits: 0 })).toMatchObject({ allowed: false, remaining: 0 });
        expect(await ask(store, { key, limit: window(20), hits: 1 })).toMatchObject({ allowed: true, remaining: 12 });
      });

      const bucket = (requestsPerUnit: number, burst: number): Limit =>
        makeLimit({ algorithm: "token_bucket", requestsPerUnit, periodUs: MINUTE, burst });

      it("that was raised takes a bucket over at once, with what was used", async () => {
        fresh();
        clock.set(START_US);
        await ask(store, { key, limit: bucket(6, 60), hits: 40 });
        clock.advance(100 * SECOND);
        // 40 used, 10 of them drained at 6 a minute; the other 30 drain at one a second, even under a burst of 20.
        expect(await ask(store, { key, limit: bucket(60, 20), hits: 0 })).toEqual({
          allowed: false,
          remaining: 0,
          retryAfterUs: 11 * SECOND,
          resetAfterUs: 30 * SECOND,
          delayUs: 0,
        });
        clock.advance(15 * SECOND);
        expect(await ask(store, { key, limit: bucket(6, 60), hits: 0 })).toMatchObject({ remaining: 45 });
      });

      it("that was lowered lets a bucket drain at its old rate until something is charged", async () => {
        fresh();
        clock.set(START_US);
        await ask(store, { key, limit: bucket(60, 60), hits: 40 });
        clock.advance(10 * SECOND);
        const lowered = bucket(6, 10);
        // 30 are used, and 21 must go before one fits.
        const refused = {
          allowed: false,
          remaining: 0,
          retryAfterUs: 21 * SECOND,
          resetAfterUs: 30 * SECOND,
          delayUs: 0,
        };
        expect(await ask(store, { key, limit: lowered, hits: 0 })).toEqual(refused);
        expect(await ask(store, { key, limit: lowered, hits: 1 })).toEqual(refused);
        clock.advance(21 * SECOND);
        expect(await ask(store, { key, limit: lowered, hits: 1 })).toEqual({
          allowed: true,
          remaining: 0,
          retryAfterUs: 0,
          resetAfterUs: 100 * SECOND,
          delayUs: 0,
        });
      });

      it("that was raised or lowered treats a bucket that refills at intervals as one that refills evenly", async () => {
        fresh();
        clock.set(START_US);
        const tokens = (requestsPerUnit: number, burst: number): Limit =>
          makeLimit({
            algorithm: "token_bucket",
            requestsPerUnit,
            periodUs: 10 * SECOND,
            refillIntervalUs: 10 * SECOND,
            burst,
          });
        await ask(store, { key, limit: tokens(10, 60), hits: 55 });
        clock.advance(25 * SECOND);
        // 35 used. Lowered: they still come back 10 at a time, in 5 s for the first time.
        for (const hits of [0, 1]) {
          expect(await ask(store, { key, limit: tokens(1, 20), hits })).toMatchObject({
            allowed: false,
            retryAfterUs: 15 * SECOND,
            resetAfterUs: 35 * SECOND,
          });
        }
        // Raised: 30 at a time from now on, also when a look has said so.
        expect(await ask(store, { key, limit: tokens(30, 20), hits: 0 })).toMatchObject({
          allowed: false,
          retryAfterUs: 5 * SECOND,
          resetAfterUs: 15 * SECOND,
        });
        clock.advance(5 * SECOND);
        expect(await ask(store, { key, limit: tokens(1, 20), hits: 1 })).toMatchObject({
          allowed: true,
          remaining: 14,
          resetAfterUs: 60 * SECOND,
        });
      });

      it("leaves those who wait in their places, whether it was raised or lowered", async () => {
        fresh();
        clock.set(START_US);
        const shaper = (requestsPerUnit: number): Limit =>
          makeLimit({ algorithm: "leaky_bucket", requestsPerUnit, periodUs: MINUTE, maxDelayUs: 10 * SECOND });
        await ask(store, { key, limit: shaper(60), hits: 5 });
        clock.advance(SECOND);
        // The last of them leaves in 3 s, so the next one in 4 s at the earliest.
        for (const limit of [shaper(60), shaper(600), shaper(6)]) {
          expect(await ask(store, { key, limit, hits: 0 })).toMatchObject({ allowed: true, delayUs: 4 * SECOND });
        }
        expect(await ask(store, { key, limit: shaper(600), hits: 1 })).toMatchObject({ delayUs: 4 * SECOND });
        expect(await ask(store, { key, limit: shaper(6), hits: 1 })).toMatchObject({ delayUs: 4_100_000 });
        expect(await ask(store, { key, limit: shaper(600), hits: 1 })).toMatchObject({
          allowed: false,
          retryAfterUs: 4_100_000,
          resetAfterUs: 14_100_000,
        });
      });

      it("gives nothing away while clients disagree about it", async () => {
        fresh();
        clock.set(START_US);
        await ask(store, { key, limit: bucket(60, 20), hits: 20 });
        for (const limit of [bucket(60, 10), bucket(6, 10), bucket(600, 1), bucket(60, 20)]) {
          for (const hits of [0, 1]) expect(await ask(store, { key, limit, hits })).toMatchObject({ allowed: false });
        }
      });
    });
  });
}

export async function ask(store: Store, check: Check, budgetMs = Number.POSITIVE_INFINITY): Promise<Decision> {
  const decision = newDecision();
  await store.evaluate([check], "each", [decision], budgetMs);
  return decision;
}

export async function askAll(store: Store, checks: readonly Check[], mode: CheckMode = "each"): Promise<Decision[]> {
  const decisions = checks.map(newDecision);
  await store.evaluate(checks, mode, decisions, Number.POSITIVE_INFINITY);
  return decisions;
}
