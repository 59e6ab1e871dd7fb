// The bounded map of counters: what makes room, and what is swept.
import { describe, expect, it } from "vitest";
import { tokenBucket } from "../../../src/core/algorithms/token-bucket.ts";
import { type Counter, CounterMap } from "../../../src/stores/memory/expiry.ts";
import { fc, test } from "../../support/property.ts";

const counter = (expiresUs: number): Counter => ({ handler: tokenBucket, state: tokenBucket.init(), expiresUs });

/** A map that holds counters `0`, `1`, .. with these expiries. */
function mapOf(expiries: readonly number[], maxCounters = expiries.length): CounterMap {
  const map = new CounterMap(maxCounters);
  for (const [index, expiresUs] of expiries.entries()) map.add(`${index}`, counter(expiresUs), 0);
  return map;
}

function keysOf(map: CounterMap, among: number): string[] {
  return Array.from({ length: among }, (_, index) => `${index}`).filter((key) => map.get(key) !== undefined);
}

describe("a full map", () => {
  it("drops the counter nearest to expiry, and counts it", () => {
    const map = mapOf([50, 20, 40, 30]);
    map.add("new", counter(60), 0);
    expect(keysOf(map, 4)).toEqual(["0", "2", "3"]);
    expect(map.get("new")).toBeDefined();
    expect(map.size).toBe(4);
    expect(map.evicted).toBe(1);
  });

  it("drops expired counters first, all that it meets, and no live one", () => {
    const map = mapOf([5, 20, 10, 30]);
    map.add("new", counter(60), 10);
    expect(keysOf(map, 4)).toEqual(["1", "3"]);
    expect(map.evicted).toBe(0);
  });

  it("of one counter holds the last", () => {
    const map = mapOf([50], 1);
    map.add("new", counter(1), 0);
    expect(map.get("0")).toBeUndefined();
    expect(map.get("new")).toBeDefined();
    expect(map.size).toBe(1);
  });

  it("compares 16 counters only: the one nearest to expiry among them goes", () => {
    // One in each 16 expires soon, the later the sooner.
    const soon = (index: number): boolean => index % 16 === 3;
    const map = mapOf(Array.from({ length: 1_000 }, (_, index) => (soon(index) ? 1_000 : 1_000_000) - index / 10));
    for (let added = 1; added <= 10; added++) {
      map.add(`new ${added}`, counter(2_000_000), 0);
      const gone = Array.from({ length: 1_000 }, (_, index) => index).filter(
        (index) => map.get(`${index}`) === undefined,
      );
      expect(gone).toHaveLength(added);
      expect(gone.filter(soon)).toHaveLength(added);
    }
    // Not the very soonest of all, which would take a look at every counter.
    expect(map.get("995")).toBeDefined();
  });
});

describe("a sweep", () => {
  it("looks at some counters at a time and comes round", () => {
    const map = mapOf([1, 1, 9, 1, 9]);
    expect(map.sweep(2, 5)).toBe(2);
    expect(map.size).toBe(3);
    expect(map.sweep(2, 5)).toBe(1);
    expect(map.sweep(2, 5)).toBe(0);
    expect(map.sweep(100, 9)).toBe(2);
    expect(map.size).toBe(0);
    expect(map.sweep(100, 9)).toBe(0);
  });

  it("drops a counter at its expiry, not before", () => {
    const map = mapOf([10]);
    expect(map.sweep(5, 9)).toBe(0);
    expect(map.sweep(5, 10)).toBe(1);
  });

  it("meets counters that come while it goes on", () => {
    const map = new CounterMap(10);
    map.add("a", counter(1), 0);
    map.sweep(1, 0);
    map.add("b", counter(1), 0);
    map.delete("a");
    expect(map.sweep(1, 5)).toBe(1);
    expect(map.size).toBe(0);
  });
});

const actions = fc.array(
  fc.oneof(
    fc.record({ add: fc.nat({ max: 30 }), livesUs: fc.nat({ max: 20 }) }),
    fc.record({ remove: fc.nat({ max: 30 }) }),
    fc.record({ sweep: fc.nat({ max: 5 }) }),
  ),
  { maxLength: 80, size: "max" },
);

describe("any use", () => {
  test(
    "keeps the bound, loses no live counter without counting it",
    [fc.integer({ min: 1, max: 12 }), actions],
    (max, all) => {
      const map = new CounterMap(max);
      const live = new Map<string, number>();
      let nowUs = 0;
      for (const action of all) {
        nowUs += 1;
        const evictedBefore = map.evicted;
        if ("add" in action && map.get(`${action.add}`) === undefined) {
          map.add(`${action.add}`, counter(nowUs + action.livesUs), nowUs);
          live.set(`${action.add}`, nowUs + action.livesUs);
          if (map.get(`${action.add}`) === undefined) expect.fail("what was added is not there");
        }
        if ("remove" in action) {
          map.delete(`${action.remove}`);
          live.delete(`${action.remove}`);
        }
        if ("sweep" in action) map.sweep(action.sweep, nowUs);
        if (map.size > max) expect.fail(`${map.size} counters, and ${max} are allowed`);
        const lost = [...live].filter(([key]) => map.get(key) === undefined);
        const lostAlive = lost.filter(([, expiresUs]) => expiresUs > nowUs).length;
        // Comparing by hand: there are very many.
        if (lostAlive !== map.evicted - evictedBefore) expect(map.evicted - evictedBefore).toBe(lostAlive);
        for (const [key] of lost) live.delete(key);
      }
    },
  );
});
