// What each algorithm promises: the most hits that may pass.
import type { Limit } from "../../../src/core/limit.ts";
import { WINDOWS } from "../../../src/core/limit-spec.ts";
import { capacityOf } from "../../oracle/capacity.ts";
import { START_US } from "../../support/fake-clock.ts";
import { SECOND } from "../../support/make-limit.ts";

/** The most hits that may pass from one time to another, both included. */
export function mostWithin(limit: Limit, fromUs: number, toUs: number): number {
  const { requestsPerUnit, periodUs, params, maxDelayUs, refillIntervalUs } = limit;
  if (limit.algorithm === "fixed_window") {
    return requestsPerUnit * (Math.floor(toUs / periodUs) - Math.floor(fromUs / periodUs) + 1);
  }
  if (refillIntervalUs !== undefined) {
    return capacityOf(limit) + requestsPerUnit * (Math.floor((toUs - fromUs) / refillIntervalUs) + 1);
  }
  const sliding = Math.floor((toUs - fromUs) / periodUs) + 1;
  if (limit.algorithm === "sliding_window_counter" && limit.segments === undefined) {
    // Less than twice the limit in any window, and never more than the limit in an aligned one.
    const aligned = Math.floor(toUs / periodUs) - Math.floor(fromUs / periodUs) + 1;
    return Math.min(requestsPerUnit * aligned, (2 * requestsPerUnit - 1) * sliding);
  }
  // Never more than the limit in any window, wherever it begins.
  if (WINDOWS.has(limit.algorithm)) return requestsPerUnit * sliding;
  // A bucket fills, and a queue moves, at whole ticks.
  const [tickUs = 1] = params;
  const ticks = BigInt(Math.floor(toUs / tickUs) - Math.floor(fromUs / tickUs));
  const hitsIn = (some: bigint): number => Number((some * BigInt(tickUs) * BigInt(requestsPerUnit)) / BigInt(periodUs));
  // One leaves at once, and the others by the end of the longest wait.
  if (maxDelayUs !== undefined) return 1 + hitsIn(BigInt(Math.floor(maxDelayUs / tickUs)) + ticks);
  return capacityOf(limit) + hitsIn(ticks);
}

/** The most hits since the start of a counter that is judged now by one limit, now by the other. */
export function mostTogether(one: Limit, two: Limit, nowUs: number): number {
  const both = [one, two];
  if (WINDOWS.has(one.algorithm)) return Math.max(...both.map((limit) => mostWithin(limit, START_US, nowUs)));
  if (one.maxDelayUs !== undefined) {
    // All leave by the end of the longer wait, and never closer together than under the faster limit.
    const maxDelayUs = Math.max(...both.map((limit) => limit.maxDelayUs ?? 0));
    return Math.max(...both.map((limit) => mostWithin({ ...limit, maxDelayUs }, START_US, nowUs + SECOND)));
  }
  const drained = both.map((limit) => mostWithin(limit, START_US, nowUs + SECOND) - capacityOf(limit));
  return Math.max(...both.map(capacityOf)) + Math.max(...drained);
}
