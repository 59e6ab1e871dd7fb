// What is particular to refill at intervals; the tables in test/contract show its answers.
import { describe, expect, it } from "vitest";
import { compileLimit } from "../../../src/core/algorithms/registry.ts";
import type { Limit } from "../../../src/core/limit.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, type LimitSketch, limitSpec, MS, makeLimit, SECOND } from "../../support/make-limit.ts";
import { Counter } from "./counter.ts";

function bucket(requestsPerUnit: number, intervalUs: number, burst: number): LimitSketch {
  return { algorithm: "token_bucket", requestsPerUnit, periodUs: intervalUs, refillIntervalUs: intervalUs, burst };
}

describe("parameters", () => {
  const compile = (sketch: LimitSketch) => compileLimit(limitSpec(sketch));

  it("are the numbers of the rule: all are whole as they are", () => {
    expect(compile(bucket(999_983, DAY + 1, 2 ** 32 - 1))).toMatchObject({
      params: [DAY + 1, 999_983, 2 ** 32 - 1, 0],
      shape: "token_bucket.interval",
    });
    expect(compile({ ...bucket(5, SECOND, 7), countDenied: true })).toMatchObject({ params: [SECOND, 5, 7, 1] });
  });

  it("are refused when filling would take longer than 142 years", () => {
    expect(compile(bucket(1, 2 ** 42, 1_024))).toMatchObject({ params: [2 ** 42, 1, 1_024, 0] });
    expect(compile(bucket(1, 2 ** 42, 1_025))).toMatchObject({ problem: expect.stringContaining("142 years") });
    expect(compile(bucket(3, 2 ** 52, 3))).toMatchObject({ params: [2 ** 52, 3, 3, 0] });
    expect(compile(bucket(3, 2 ** 52, 4))).toMatchObject({ problem: expect.stringContaining("142 years") });
  });

  it("keep counters of their own, apart from a bucket that refills evenly", () => {
    expect(makeLimit({ algorithm: "token_bucket", requestsPerUnit: 5, periodUs: SECOND }).shape).toBe("token_bucket");
  });
});

describe("intervals", () => {
  it("give what they should over a long time, however often the bucket is asked", () => {
    const counter = new Counter(makeLimit(bucket(7, SECOND, 20)));
    let passed = 0;
    for (let atMs = 0; atMs <= 60_000; atMs += 33) if (counter.ask(START_US + atMs * MS, 1).allowed) passed += 1;
    // A full bucket, and 59 refills of which all was used when the last hit came at 59.994 s.
    expect(passed).toBe(20 + 59 * 7);
  });

  it("give what they should while two replicas disagree about it and take turns", () => {
    const [one, two]: [Limit, Limit] = [makeLimit(bucket(6, SECOND, 20)), makeLimit(bucket(7, SECOND, 10))];
    let counter = new Counter(one);
    let passed = 0;
    for (let atMs = 0; atMs <= 60_000; atMs += 20) {
      counter = counter.copy(atMs % 40 === 0 ? one : two);
      if (counter.ask(START_US + atMs * MS, 1).allowed) passed += 1;
    }
    expect(passed).toBeGreaterThanOrEqual(20 + 60 * 6);
    expect(passed).toBeLessThanOrEqual(20 + 60 * 7);
  });
});
