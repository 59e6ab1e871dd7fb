// What is particular to the leaky bucket that shapes: when hits leave. The tables in test/contract show its answers.
import { describe, expect, it } from "vitest";
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import { paceOf } from "../../oracle/shaper.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, type LimitSketch, limitSpec, MINUTE, MS, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { limits, someTimeUs } from "./scenes.ts";

type Numbers = Required<Pick<LimitSketch, "requestsPerUnit" | "periodUs" | "maxDelayUs">>;

function compiled(numbers: Numbers): readonly number[] | string {
  const outcome = compileLimit(limitSpec({ algorithm: "leaky_bucket", ...numbers }));
  return "problem" in outcome ? outcome.problem : outcome.params;
}

describe("parameters", () => {
  it.each([
    // per     period  longest wait  |  us per tick, parts of a tick, parts per hit, longest wait in ticks, at once
    [5, SECOND, 400 * MS, [1, 1, 200_000, 400_000, 3]],
    [5, SECOND, 399_999, [1, 1, 200_000, 399_999, 2]],
    [3, SECOND, SECOND, [1, 3, 1_000_000, 1_000_000, 4]],
    [1, MINUTE, 1, [1, 1, 60_000_000, 1, 1]],
    [1_000_000, SECOND, 10, [1, 1, 1, 10, 11]],
    [999_983, DAY, DAY, [100, 999_983, 864_000_000, 864_000_000, 999_984]],
    // What is no whole number of ticks is cut off.
    [999_983, DAY, DAY + 99, [100, 999_983, 864_000_000, 864_000_000, 999_984]],
  ])("%d per %d us, up to %d us", (requestsPerUnit, periodUs, maxDelayUs, params) => {
    expect(compiled({ requestsPerUnit, periodUs, maxDelayUs })).toEqual([...params, 0]);
  });

  it("are refused when a full queue would need longer than 142 years, or cannot be counted exactly", () => {
    // One leaves at once, and the next a second after the longest wait.
    const longest = 2 ** 52 - SECOND;
    const oneASecond = (maxDelayUs: number) => compiled({ requestsPerUnit: 1, periodUs: SECOND, maxDelayUs });
    expect(oneASecond(longest - 1)).toEqual([1, 1, SECOND, longest - 1, 4_503_599_627, 0]);
    expect(oneASecond(longest)).toEqual([10, 1, SECOND / 10, Math.floor(longest / 10), 4_503_599_627, 0]);
    expect(oneASecond(longest + 1)).toContain("142 years");
    expect(compiled({ requestsPerUnit: 999_983, periodUs: DAY + 1, maxDelayUs: DAY })).toContain("lower `max_delay`");
  });

  const numbers = fc.record({
    requestsPerUnit: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 2 ** 32 - 1 })),
    periodUs: fc.oneof(fc.integer({ min: 1, max: MINUTE }), fc.constantFrom(SECOND, MINUTE, DAY, 365 * DAY)),
    maxDelayUs: fc.oneof(fc.integer({ min: 1, max: MINUTE }), fc.integer({ min: 1, max: 2 ** 52 })),
  });

  test("use the finest tick with which everything is exact", [numbers], (sketch) => {
    const params = compiled(sketch);
    const limit = { ...sketch, burst: 1, countDenied: false };
    if (typeof params === "string") {
      if (!params.includes("142 years")) expect(() => paceOf(limit)).toThrow();
      return;
    }
    const [q = 0, n = 0, w = 0, ticks = 0] = params;
    const pace = paceOf(limit);
    expect([q, n, w, ticks].map(BigInt)).toEqual([pace.tickUs, pace.tickParts, pace.gap.num, pace.longestWait]);
    // The rate is the rule's, exactly.
    expect(BigInt(n) * BigInt(sketch.periodUs)).toBe(BigInt(w) * BigInt(q) * BigInt(sketch.requestsPerUnit));
  });

  it("keep counters of their own, apart from the meter's", () => {
    const sketch = { algorithm: "leaky_bucket", requestsPerUnit: 1, periodUs: SECOND } as const;
    expect(makeLimit(sketch).shape).toBe("leaky_bucket");
    expect(makeLimit({ ...sketch, maxDelayUs: 1 }).shape).toBe("leaky_bucket.shaper");
  });
});

describe("departures", () => {
  const arrivals = fc.array(
    fc.record({ afterUs: someTimeUs, hits: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 5 })) }),
    { minLength: 2, maxLength: 30, size: "max" },
  );

  test(
    "are in order, evenly spaced, and none is later than promised",
    [limits("leaky_bucket.shaper"), arrivals],
    (sketch, all) => {
      const limit = makeLimit(sketch);
      const counter = new Counter(limit);
      const left: { readonly atUs: number; readonly hits: number }[] = [];
      let nowUs = START_US;
      for (const { afterUs, hits } of all) {
        nowUs += afterUs;
        const { allowed, delayUs } = counter.ask(nowUs, hits);
        if (!allowed) expect(delayUs).toBe(0);
        if (!allowed) continue;
        expect(delayUs).toBeLessThanOrEqual(sketch.maxDelayUs ?? 0);
        left.push({ atUs: nowUs + delayUs, hits });
      }
      const [tickUs = 1] = limit.params;
      for (const [from, first] of left.entries()) {
        let hits = 0;
        for (const { atUs, hits: more } of left.slice(from)) {
          // So many hits later, and told in whole ticks, rounded up.
          const apartUs = BigInt(atUs - first.atUs + tickUs);
          expect(apartUs * BigInt(limit.requestsPerUnit)).toBeGreaterThan(BigInt(hits) * BigInt(limit.periodUs));
          hits += more;
        }
      }
    },
  );

  it("come as early as they can", () => {
    const counter = new Counter(
      makeLimit({ algorithm: "leaky_bucket", requestsPerUnit: 4, periodUs: SECOND, maxDelayUs: SECOND }),
    );
    const asked = [0, 0, 100, 600, 2_000, 2_001].map((atMs) => {
      const { allowed, delayUs } = counter.ask(START_US + atMs * MS, 1);
      return allowed ? atMs + delayUs / MS : "refused";
    });
    expect(asked).toEqual([0, 250, 500, 750, 2_000, 2_250]);
  });
});
