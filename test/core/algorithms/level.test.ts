// The arithmetic of token bucket, leaky bucket and GCRA: which numbers a limit compiles to, and that they are always exact.
import { describe, expect, it } from "vitest";
import { compileLimit, HANDLERS } from "../../../src/core/algorithms/registry.ts";
import { OracleFollower } from "../../oracle/follower.ts";
import { grainOf } from "../../oracle/level.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, type LimitSketch, limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { limits } from "./scenes.ts";

const YEAR = 365 * DAY;
const LARGEST_BURST = 2 ** 32 - 1;
const LARGEST_RATE = 2 ** 32 - 1;

function compiled(sketch: Omit<LimitSketch, "algorithm">): readonly number[] | string {
  const outcome = compileLimit(limitSpec({ algorithm: "gcra", ...sketch }));
  return "problem" in outcome ? outcome.problem : outcome.params;
}

describe("parameters", () => {
  it.each([
    // per      period       burst  |  tick us, units per tick, units per hit
    [1_000_000, SECOND, 1_000_000, [1, 1, 1]],
    [10, MINUTE, 10, [1, 1, 6_000_000]],
    [1_000_000, DAY, 1_000_000, [1, 1, 86_400]],
    [3, SECOND, 2, [1, 3, 1_000_000]],
    [999_983, DAY, 999_983, [100, 999_983, 864_000_000]],
    [999_999_937, 30 * DAY, 999_999_937, [1_000_000, 999_999_937, 2_592_000]],
    [7, 7, 1, [1, 1, 1]],
    [5, 1, 1, [1, 5, 1]],
  ])("%d per %d us, burst %d", (requestsPerUnit, periodUs, burst, [q, n, w]) => {
    expect(compiled({ requestsPerUnit, periodUs, burst })).toEqual([q, n, w, burst, 0]);
  });

  it("say whether refused hits are charged", () => {
    expect(compiled({ requestsPerUnit: 1, periodUs: 1, countDenied: true })).toEqual([1, 1, 1, 1, 1]);
  });

  it("are refused when filling would take longer than 142 years, or cannot be exact", () => {
    expect(compiled({ requestsPerUnit: 1, periodUs: YEAR, burst: 142 })).toEqual([1, 1, YEAR, 142, 0]);
    expect(compiled({ requestsPerUnit: 1, periodUs: YEAR, burst: 143 })).toContain("142 years");
    expect(compiled({ requestsPerUnit: LARGEST_RATE, periodUs: YEAR + 1, burst: LARGEST_BURST })).toContain(
      "lower the burst",
    );
    expect(compiled({ requestsPerUnit: 1, periodUs: 2 ** 52 - 1, burst: 1 })).toEqual([1, 1, 2 ** 52 - 1, 1, 0]);
    expect(compiled({ requestsPerUnit: 1, periodUs: 2 ** 52 + 2, burst: 1 })).toContain("142 years");
  });

  const anyLimit = fc.record({
    requestsPerUnit: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: LARGEST_RATE })),
    periodUs: fc.oneof(
      fc.integer({ min: 1, max: MINUTE }),
      fc.constantFrom(SECOND, MINUTE, DAY, 30 * DAY, YEAR),
      fc.maxSafeNat(),
    ),
    burst: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: LARGEST_BURST })),
  });

  test(
    "use the finest tick with which everything is exact",
    [anyLimit.filter(({ periodUs }) => periodUs > 0)],
    (sketch) => {
      const params = compiled(sketch);
      if (typeof params === "string") {
        if (params.includes("142 years")) expect(fillUs(sketch)).toBeGreaterThan(2 ** 52 * 0.999);
        else expect(() => grainOf({ countDenied: false, ...sketch })).toThrow();
        return;
      }
      const [q = 0, n = 0, w = 0, burst = 0] = params;
      const grain = grainOf({ countDenied: false, ...sketch });
      expect([q, n, w].map(BigInt)).toEqual([grain.tickUs, grain.tickUnits, grain.hitUnits]);
      expect(2n * BigInt(burst) * BigInt(w) + BigInt(n)).toBeLessThanOrEqual(2n ** 53n - 1n);
      // The rate is the rule's, exactly.
      expect(BigInt(n) * BigInt(sketch.periodUs)).toBe(BigInt(w) * BigInt(q) * BigInt(sketch.requestsPerUnit));
    },
  );
});

describe("exactness", () => {
  it.each(HANDLERS)("a counter that was never touched needs no time to be new: $name", (handler) => {
    expect(handler.ttlUs(handler.init(), [1, 1, 1, 1, 1, 1], START_US)).toBe(0);
  });
});

describe("a limit that changes back and forth", () => {
  const change = fc.record({
    limit: fc.nat({ max: 2 }),
    by: fc.oneof(
      fc.constantFrom(0, 1, 333_334, SECOND, -1, -5 * SECOND, -5 * SECOND - 1),
      fc.integer({ min: 0, max: 10 * SECOND }),
      fc.integer({ min: 0, max: DAY }),
    ),
    hits: fc.oneof(fc.constantFrom(0, 1, -1, Number.MAX_SAFE_INTEGER), fc.integer({ min: -700, max: 1_000 })),
  });
  const cases = fc.tuple(
    fc.array(limits("token_bucket"), { minLength: 2, maxLength: 3 }),
    fc.boolean(),
    fc.array(change, { minLength: 2, maxLength: 25, size: "max" }),
  );

  test("is answered as the oracle does", [cases], ([sketches, countDenied, changes]) => {
    const all = sketches.map((sketch) => makeLimit({ ...sketch, countDenied }));
    const [first] = all;
    if (first === undefined) return;
    let counter = new Counter(first);
    const oracle = new OracleFollower();
    let nowUs = START_US;
    for (const { limit: index, by, hits } of changes) {
      const limit = all[index % all.length] ?? first;
      nowUs += by;
      counter = counter.copy(limit);
      const answer = counter.ask(nowUs, hits);
      const check = { key: "key", algorithm: limit.algorithm, limit, hits };
      oracle.follow([check], "each", nowUs, [answer]);
    }
  });
});

function fillUs({
  requestsPerUnit,
  periodUs,
  burst,
}: {
  requestsPerUnit: number;
  periodUs: number;
  burst: number;
}): number {
  return (burst / requestsPerUnit) * periodUs;
}
