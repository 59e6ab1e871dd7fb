// The oracles are held against the hand-written tables too, so that they cannot drift from what people expect.
import { describe, expect, it } from "vitest";
import type { Store } from "../../src/core/ports.ts";
import { storeTables } from "../contract/store-tables.ts";
import { fc, test } from "../support/property.ts";
import { ceilOf, floorOf, fraction, isBelow, minus, plus, reduced } from "./fraction.ts";
import { earliest } from "./oracle.ts";
import { EMPTY_WORLD, rightAnswers, type World, worldsAfter } from "./worlds.ts";

storeTables("the oracle", async (clock) => {
  let worlds: readonly World[] = [EMPTY_WORLD];
  const store: Store = {
    evaluate: (checks, mode, decisions): undefined => {
      const questions = checks.map(({ key, limit, hits }) => ({ key, algorithm: limit.algorithm, limit, hits }));
      const answers = rightAnswers(worlds, questions, mode, clock.nowUs());
      worlds = worldsAfter(worlds, questions, mode, clock.nowUs(), answers);
      for (const [index, answer] of answers.entries()) Object.assign(decisions[index] ?? {}, answer);
    },
    reset: () => undefined,
    close: () => undefined,
  };
  return { store, another: async () => store, counters: async () => 0, close: async () => {} };
});

describe("fractions", () => {
  const any = fc.tuple(fc.bigInt(-1000n, 1000n), fc.bigInt(1n, 60n)).map(([num, den]) => fraction(num, den));

  test("floor and ceil enclose", [any], (a) => {
    const [floor, ceil] = [fraction(floorOf(a)), fraction(ceilOf(a))];
    expect(isBelow(a, floor)).toBe(false);
    expect(isBelow(ceil, a)).toBe(false);
    expect(ceil.num - floor.num).toBe(a.num % a.den === 0n ? 0n : 1n);
  });

  test("what is added can be taken away", [any, any], (a, b) => {
    expect(reduced(minus(plus(a, b), b))).toEqual(reduced(a));
  });
});

describe("the earliest time", () => {
  it.each([0n, 1n, 2n, 3n, 7n, 8n, 1_000_003n])("is found %d us ahead", (ahead) => {
    expect(earliest(100n, (atUs) => atUs >= 100n + ahead)).toBe(100n + ahead);
  });
});
