// What is particular to the two sliding window counters: their parameters, and how close they come to a sliding window.
import { describe, expect, it } from "vitest";
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, HOUR, type LimitSketch, limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { someHits, someTimeUs } from "./scenes.ts";

function compiled(sketch: Omit<LimitSketch, "algorithm">): readonly number[] | string {
  const limit = compileLimit(limitSpec({ algorithm: "sliding_window_counter", ...sketch }));
  return "problem" in limit ? limit.problem : limit.params;
}

describe("parameters", () => {
  it.each([
    // per          period    | tick us
    [1, MINUTE, 1],
    [600, HOUR, 1],
    [30_000, DAY, 1],
    [40_000, DAY, 10],
    [1_000_000, DAY, 100],
    [2 ** 32 - 1, MINUTE, 100],
    [1_000_000_000, 30 * DAY, 1_000_000],
    // The finest tick that divides the window, if it is fine enough.
    [1_000_000, 1_000_001, 1],
  ])("%d per %d us are weighed in ticks of %d us", (requestsPerUnit, periodUs, tickUs) => {
    expect(compiled({ requestsPerUnit, periodUs })).toEqual([requestsPerUnit, periodUs, tickUs, 0]);
  });

  it("are refused when shares cannot be exact, or the window is too long", () => {
    expect(compiled({ requestsPerUnit: 2 ** 32 - 1, periodUs: 30 * DAY })).toContain("set `segments`");
    expect(compiled({ requestsPerUnit: 50_000, periodUs: DAY + 1 })).toContain("cannot be weighed exactly");
    expect(compiled({ requestsPerUnit: 1, periodUs: 2 ** 51 })).toEqual([1, 2 ** 51, 1, 0]);
    expect(compiled({ requestsPerUnit: 1, periodUs: 2 ** 51 + 1 })).toContain("71 years");
  });

  it.each([
    // per          period      segments | segment us
    [10, MINUTE, 6, 10 * SECOND],
    [10, MINUTE, 1, MINUTE],
    [10, SECOND, 7, 142_858], // rounded up: all together are no shorter than the window
    [2 ** 32 - 1, 2 ** 51, 100, 22_517_998_136_853],
    [10, 100, 100, 1],
  ])("%d per %d us in %d segments count parts of %d us", (requestsPerUnit, periodUs, segments, segmentUs) => {
    const params = [requestsPerUnit, segmentUs, segments, 1];
    expect(compiled({ requestsPerUnit, periodUs, segments, countDenied: true })).toEqual(params);
  });

  it("are refused when there are more segments than microseconds", () => {
    expect(compiled({ requestsPerUnit: 1, periodUs: 99, segments: 100 })).toContain("too short for 100 segments");
    expect(compiled({ requestsPerUnit: 1, periodUs: 2 ** 51 + 1, segments: 2 })).toContain("71 years");
  });

  it("name the shape of the state by the number of segments", () => {
    const shapeOf = (segments?: number): string =>
      makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: 1, periodUs: MINUTE, segments }).shape;
    expect(shapeOf()).toBe("sliding_window_counter");
    expect(shapeOf(1)).toBe("sliding_window_counter.seg1");
    expect(shapeOf(12)).toBe("sliding_window_counter.seg12");
  });
});

const arrivals = fc.array(fc.record({ afterUs: someTimeUs, hits: someHits }), { maxLength: 40, size: "max" });

describe("segments", () => {
  const limits = fc.record({
    requestsPerUnit: fc.constantFrom(1, 12, 600),
    periodUs: fc.oneof(fc.constantFrom(SECOND, MINUTE, HOUR), fc.integer({ min: 12, max: 5 * SECOND })),
    segments: fc.integer({ min: 1, max: 12 }),
  });

  test("refuse only what would be too many in a window that is a segment longer", [limits, arrivals], (sketch, all) => {
    const limit = makeLimit({ algorithm: "sliding_window_counter", ...sketch });
    const longerUs = (sketch.segments + 1) * Math.ceil(sketch.periodUs / sketch.segments);
    const counter = new Counter(limit);
    const passed: { atUs: number; hits: number }[] = [];
    const within = (nowUs: number, us: number): number =>
      passed.filter(({ atUs }) => atUs > nowUs - us).reduce((sum, { hits }) => sum + hits, 0);
    let nowUs = START_US;
    for (const { afterUs, hits } of all) {
      nowUs += afterUs;
      if (counter.ask(nowUs, hits).allowed) passed.push({ atUs: nowUs, hits });
      else expect(within(nowUs, longerUs) + hits).toBeGreaterThan(sketch.requestsPerUnit);
      expect(within(nowUs, sketch.periodUs)).toBeLessThanOrEqual(sketch.requestsPerUnit);
    }
  });
});

describe("the weighted form", () => {
  it("lets almost twice the limit pass at the worst, where all hits of a window come at its end", () => {
    const counter = new Counter(
      makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: 100, periodUs: 100 * SECOND }),
    );
    const windowUs = START_US - (START_US % (100 * SECOND)) + 100 * SECOND;
    expect(counter.ask(windowUs - 1, 100).allowed).toBe(true);
    expect(counter.ask(windowUs, 1)).toMatchObject({ allowed: false, retryAfterUs: SECOND });
    expect(counter.ask(windowUs + 99 * SECOND, 99)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("lets all but one of a limit's hits pass in each window where they come evenly", () => {
    const counter = new Counter(
      makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit: 60, periodUs: MINUTE }),
    );
    const passed = [0, 0, 0, 0, 0];
    for (let second = 0; second < 300; second++) {
      const window = Math.floor(second / 60);
      if (counter.ask(START_US + second * SECOND, 1).allowed) passed[window] = (passed[window] ?? 0) + 1;
    }
    expect(passed).toEqual([60, 59, 59, 59, 59]);
  });

  it("forgets nothing when the limit is lowered far below what was counted", () => {
    const limit = (requestsPerUnit: number) =>
      makeLimit({ algorithm: "sliding_window_counter", requestsPerUnit, periodUs: DAY });
    const counter = new Counter(limit(1_000_000));
    const startUs = START_US - (START_US % DAY);
    counter.ask(startUs, 1_000_000);
    const lowered = counter.copy(limit(10));
    // A tenth of the limit: the next window's last 864 ms, and one of ten hits is free for one of a million.
    const { retryAfterUs } = lowered.ask(startUs + 1, 9);
    expect(startUs + 1 + retryAfterUs).toBe(startUs + 2 * DAY - 86_400);
    expect(lowered.copy(limit(1_000_000)).ask(startUs + 2, 0)).toMatchObject({ allowed: false, remaining: 0 });
  });
});
