import { describe, expect, it } from "vitest";
import { compileLimit } from "../../src/core/algorithms/registry.ts";
import { largestUnit, UNIT_SECONDS, type Unit } from "../../src/core/limit-spec.ts";
import { DAY, HOUR, limitSpec, MINUTE, makeLimit, SECOND } from "../support/make-limit.ts";
import { fc, test } from "../support/property.ts";

describe("the largest unit of a period", () => {
  it.each<[number, Unit | undefined, number]>([
    [1, undefined, 1],
    [SECOND - 1, undefined, 1],
    [SECOND, "second", 1],
    [1.5 * SECOND, undefined, 1],
    [30 * SECOND, "second", 30],
    [60 * SECOND, "minute", 1],
    [90 * SECOND, "second", 90],
    [5 * MINUTE, "minute", 5],
    [HOUR, "hour", 1],
    [36 * HOUR, "hour", 36],
    [DAY, "day", 1],
    [6 * DAY, "day", 6],
    [7 * DAY, "week", 1],
    [14 * DAY, "week", 2],
    [30 * DAY, "month", 1],
    [90 * DAY, "month", 3],
    [365 * DAY, "year", 1],
    [730 * DAY, "year", 2],
    // Months and weeks both divide it: the larger one is said.
    [210 * DAY, "month", 7],
  ])("%d us", (periodUs, unit, unitMultiplier) => {
    expect(largestUnit(periodUs)).toEqual({ unit, unitMultiplier });
  });

  test("makes up the whole period, and no larger one does", [fc.integer({ min: 1, max: 4_000_000 })], (seconds) => {
    const { unit, unitMultiplier } = largestUnit(seconds * SECOND);
    const unitSeconds = unit === undefined ? 0 : UNIT_SECONDS[unit];
    expect(unitSeconds * unitMultiplier).toBe(seconds);
    for (const larger of Object.values(UNIT_SECONDS)) {
      if (larger > unitSeconds) expect(seconds % larger).not.toBe(0);
    }
  });
});

describe("a compiled limit", () => {
  it("is frozen and says everything that was said", () => {
    const spec = limitSpec({ algorithm: "gcra", requestsPerUnit: 5, periodUs: 2 * MINUTE, burst: 9, name: "plan" });
    const limit = makeLimit(spec);
    expect(limit).toMatchObject({ ...spec, unit: "minute", unitMultiplier: 2, never: false });
    expect(Object.isFrozen(limit)).toBe(true);
    expect(Object.isFrozen(limit.params)).toBe(true);
    expect(limit.handler.name).toBe("gcra");
    expect(limit.shape).toBe("gcra");
  });

  it.each([
    ["fixed_window", false],
    ["gcra", true],
    ["leaky_bucket", true],
    ["sliding_window_counter", true],
    ["sliding_window_log", true],
    ["token_bucket", true],
  ] as const)("of %s with nothing per unit is never passed: %s", (algorithm, never) => {
    const limit = compileLimit(limitSpec({ algorithm, requestsPerUnit: 0, periodUs: MINUTE }));
    expect(limit).toMatchObject({ never });
  });
});
