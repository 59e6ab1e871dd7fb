// What is particular to fixed windows; the tables in test/contract show their answers.
import { describe, expect, it } from "vitest";
import { fixedWindow } from "../../../src/core/algorithms/fixed-window.ts";
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import { UNIT_SECONDS, type Unit } from "../../../src/core/limit-spec.ts";
import { fixedWindowOracle, type WindowModel } from "../../oracle/fixed-window.ts";
import { START_US } from "../../support/fake-clock.ts";
import { limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";

const at = (date: string): number => Date.parse(date) * 1_000;

describe("windows", () => {
  it.each<[Unit, string, string]>([
    ["second", "2026-03-01T12:34:56.789Z", "2026-03-01T12:34:57Z"],
    ["minute", "2026-03-01T12:34:56Z", "2026-03-01T12:35:00Z"],
    ["hour", "2026-03-01T12:34:56Z", "2026-03-01T13:00:00Z"],
    ["day", "2026-03-01T12:34:56Z", "2026-03-02T00:00:00Z"],
    // Weeks begin on Thursday, months have 30 days and years 365, all counted from 1970.
    ["week", "2026-03-04T23:59:59Z", "2026-03-05T00:00:00Z"],
    ["week", "2026-03-05T00:00:00Z", "2026-03-12T00:00:00Z"],
    ["month", "2026-03-01T12:34:56Z", "2026-03-08T00:00:00Z"],
    ["year", "2026-03-01T12:34:56Z", "2026-12-18T00:00:00Z"],
  ])("a %s that holds %s ends at %s", (unit, now, end) => {
    const limit = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 1, periodUs: UNIT_SECONDS[unit] * SECOND });
    const { resetAfterUs } = new Counter(limit).ask(at(now), 1);
    expect(at(now) + resetAfterUs).toBe(at(end));
  });

  it("end exactly when the next begins, and keep nothing", () => {
    const counter = new Counter(makeLimit({ algorithm: "fixed_window", requestsPerUnit: 2, periodUs: MINUTE }));
    expect(counter.ask(START_US + MINUTE - 1, 2)).toMatchObject({ allowed: true, remaining: 0, resetAfterUs: 1 });
    expect(counter.ask(START_US + MINUTE - 1, 1)).toMatchObject({ allowed: false, retryAfterUs: 1 });
    expect(counter.ask(START_US + MINUTE, 2)).toMatchObject({ allowed: true, remaining: 0, resetAfterUs: MINUTE });
  });

  it("are as long as 142 years at the most", () => {
    const compile = (periodUs: number) =>
      compileLimit(limitSpec({ algorithm: "fixed_window", requestsPerUnit: 1, periodUs }));
    expect(compile(2 ** 52)).toMatchObject({ params: [1, 2 ** 52, 1] });
    expect(compile(2 ** 52 + 1)).toMatchObject({ problem: expect.stringContaining("142 years") });
  });

  it("take 0 hits a window: nothing passes, and a counter is kept", () => {
    const limit = makeLimit({ algorithm: "fixed_window", requestsPerUnit: 0, periodUs: MINUTE });
    expect(limit.never).toBe(false);
    const counter = new Counter(limit);
    expect(counter.ask(START_US, 1)).toMatchObject({ allowed: false, remaining: 0, retryAfterUs: -1 });
    expect(counter.text()).toContain('"count":1');
  });

  it("start from a state that is in no window", () => {
    expect(fixedWindow.init()).toEqual({ window: -1, count: 0 });
  });
});

describe("exactness", () => {
  const limit = fc.record({
    requestsPerUnit: fc.oneof(fc.constantFrom(0, 1, 5, 2 ** 32 - 1), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
    periodUs: fc.oneof(fc.constantFrom(1, SECOND, 2 ** 52), fc.integer({ min: 1, max: 2 ** 52 })),
    countDenied: fc.boolean(),
  });
  const steps = fc.array(
    fc.record({
      by: fc.oneof(fc.constantFrom(0, 1, -5 * SECOND, -5 * SECOND - 1), fc.integer({ min: -MINUTE, max: 10 * MINUTE })),
      hits: fc.oneof(fc.constantFrom(0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER, -1), fc.maxSafeInteger()),
    }),
    { minLength: 1, maxLength: 20 },
  );

  test("holds for any limit, any hits and any clock", [limit, steps], (sketch, all) => {
    const counter = new Counter(makeLimit({ algorithm: "fixed_window", ...sketch }));
    let model: WindowModel | undefined;
    let nowUs = START_US;
    for (const { by, hits } of all) {
      nowUs += by;
      const [step] = fixedWindowOracle.ask(model, { burst: 1, ...sketch }, nowUs, hits);
      expect(counter.ask(nowUs, hits)).toEqual(step?.answer);
      model = step?.state;
    }
  });
});
