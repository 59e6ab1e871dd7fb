// What is particular to the sliding window log: what it remembers, and that this stays bounded.
import { describe, expect, it } from "vitest";
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import { type LogState, MAX_LOG_LIMIT, slidingLog } from "../../../src/core/algorithms/sliding-log.ts";
import { newDecision } from "../../../src/core/decision.ts";
import { OracleFollower } from "../../oracle/follower.ts";
import { START_US } from "../../support/fake-clock.ts";
import { limitSpec, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";

describe("parameters", () => {
  const compile = (requestsPerUnit: number, periodUs: number) =>
    compileLimit(limitSpec({ algorithm: "sliding_window_log", requestsPerUnit, periodUs, countDenied: true }));

  it("are the limit, the window and whether refused hits are charged", () => {
    expect(compile(5, MINUTE)).toMatchObject({ params: [5, MINUTE, 1], shape: "sliding_window_log" });
  });

  it("are bounded", () => {
    expect(compile(MAX_LOG_LIMIT, 2 ** 52)).toMatchObject({ params: [10_000, 2 ** 52, 1] });
    expect(compile(MAX_LOG_LIMIT + 1, MINUTE)).toMatchObject({ problem: expect.stringContaining("at most 10000") });
    expect(compile(1, 2 ** 52 + 1)).toMatchObject({ problem: expect.stringContaining("142 years") });
  });
});

describe("a log", () => {
  it("grows with the limit and not with what comes", () => {
    for (const countDenied of [false, true]) {
      const { handler, params } = makeLimit({
        algorithm: "sliding_window_log",
        requestsPerUnit: 300,
        periodUs: SECOND,
        countDenied,
      });
      const state = slidingLog.init();
      // Twice as many as pass, each in a microsecond of its own.
      for (let hit = 0; hit < 10_000; hit++) {
        handler.step(state, params, START_US + Math.floor((hit * SECOND) / 600), 1, newDecision());
        expect(state.times.length).toBeLessThanOrEqual(401);
        expect(state.sums).toHaveLength(state.times.length + 1);
      }
    }
  });

  it("keeps hits of one microsecond as one entry, also while the clock is behind", () => {
    const counter = new Counter(makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: 9, periodUs: MINUTE }));
    for (const atUs of [START_US, START_US, START_US - 1, START_US - 5 * SECOND]) counter.ask(atUs, 2);
    expect(counter.text()).toBe(JSON.stringify({ times: [START_US], sums: [0, 8] }));
  });

  it("is empty when all was given back", () => {
    const counter = new Counter(makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: 9, periodUs: MINUTE }));
    counter.ask(START_US, 2);
    counter.ask(START_US + 1, 2);
    expect(counter.ask(START_US + 2, -4)).toMatchObject({ allowed: true, remaining: 9, resetAfterUs: 0 });
    expect(counter.text()).toBe(JSON.stringify(slidingLog.init()));
    expect(counter.ttlUs(START_US + 2)).toBe(0);
  });

  it("keeps what was used when the limit is lowered and raised again", () => {
    const limit = (requestsPerUnit: number, countDenied: boolean) =>
      makeLimit({ algorithm: "sliding_window_log", requestsPerUnit, periodUs: MINUTE, countDenied });
    for (const countDenied of [false, true]) {
      let counter = new Counter(limit(10, countDenied));
      counter.ask(START_US, 8);
      counter = counter.copy(limit(3, countDenied));
      expect(counter.ask(START_US + 1, 1)).toMatchObject({ allowed: false, remaining: 0, retryAfterUs: MINUTE - 1 });
      counter = counter.copy(limit(10, countDenied));
      expect(counter.ask(START_US + 2, 0)).toMatchObject({ allowed: true, remaining: 2 });
    }
  });
});

const someArrivals = fc.array(
  fc.record({ byUs: fc.oneof(fc.constantFrom(0, 1, 10), fc.integer({ min: 0, max: 40 })), hits: fc.nat({ max: 12 }) }),
  { maxLength: 60, size: "max" },
);

describe("sums", () => {
  const backAndForth = fc.array(
    fc.record({ byUs: fc.integer({ min: -5, max: 40 }), hits: fc.integer({ min: -6, max: 12 }) }),
    { maxLength: 60, size: "max" },
  );

  test("may pass 2^32: only differences count", [backAndForth, fc.nat({ max: 30 })], (arrivals, before) => {
    const limit = makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: 10, periodUs: 100, countDenied: true });
    const state: LogState = { times: [], sums: [2 ** 32 - 1 - before] };
    const counter = new Counter(limit, state);
    const oracle = new OracleFollower();
    let nowUs = START_US;
    for (const { byUs, hits } of arrivals) {
      nowUs += byUs;
      const check = { key: "key", algorithm: limit.algorithm, limit, hits };
      oracle.follow([check], "each", nowUs, [counter.ask(nowUs, hits)]);
      for (const sum of state.sums) expect(sum).toBeLessThan(2 ** 32);
    }
  });
});

describe("refused hits that are counted", () => {
  test("wait as long as if every one of them were remembered", [someArrivals], (arrivals) => {
    const [most, periodUs] = [10, 100];
    const limit = makeLimit({ algorithm: "sliding_window_log", requestsPerUnit: most, periodUs, countDenied: true });
    const counter = new Counter(limit);
    const all: { atUs: number; hits: number }[] = [];
    const usedAt = (us: number): number =>
      all.filter(({ atUs }) => atUs > us - periodUs).reduce((sum, { hits }) => sum + hits, 0);
    let nowUs = START_US;
    for (const { byUs, hits } of arrivals) {
      nowUs += byUs;
      const asked = Math.max(1, hits);
      const fits = usedAt(nowUs) + asked <= most;
      all.push({ atUs: nowUs, hits });
      let waitUs = 0;
      while (asked <= most && usedAt(nowUs + waitUs) + asked > most) waitUs += 1;
      const { allowed, remaining, retryAfterUs } = counter.ask(nowUs, hits);
      expect(allowed).toBe(fits);
      expect(remaining).toBe(Math.max(0, most - usedAt(nowUs)));
      if (!fits) expect(retryAfterUs).toBe(asked > most ? -1 : waitUs);
    }
  });
});
