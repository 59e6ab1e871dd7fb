// What Envoy is told of a verdict, before it is bytes: what is left, when it resets, and the three headers.

import { MAX_UINT32, US_PER_SECOND } from "../core/limit-spec.ts";
import type { DescriptorStatus, Verdict } from "../core/verdict.ts";

/** Names of the headers that an answer may bring. */
export interface HeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Hits that would pass right now, at most what a uint32 holds. */
export function remainingOf(status: DescriptorStatus): number {
  return Math.min(status.decision?.remaining ?? 0, MAX_UINT32);
}

/**
 * Whole seconds, rounded up. For a refusal when it would pass (Envoy copies it to `retry-after`), at least 1, or when
 * the counter is new where it never can pass; else until the counter is new.
 */
export function secondsUntilReset(status: DescriptorStatus): number {
  const { decision } = status;
  if (decision === undefined) return 0;
  if (decision.allowed) return Math.ceil(decision.resetAfterUs / US_PER_SECOND);
  const waitUs = decision.retryAfterUs < 0 ? decision.resetAfterUs : decision.retryAfterUs;
  return Math.max(1, Math.ceil(waitUs / US_PER_SECOND));
}

/** Envoy copies names into `x-ratelimit-limit` between quotes without escaping: what could end either becomes `_`. */
export function cleanName(name: string): string {
  return /^[^\p{Cc}"\\]*$/u.test(name) ? name : name.replace(/[\p{Cc}"\\]/gu, "_");
}

/**
 * Limit, remaining and reset of one status: the last plain refusal, else the lowest remaining (the first on a tie), as
 * at envoyproxy/ratelimit. `undefined` when nothing limits the request.
 */
export function limitHeaders(verdict: Verdict, names: HeaderNames): { key: string; value: string }[] | undefined {
  let chosen: DescriptorStatus | undefined;
  let bar = MAX_UINT32;
  for (const status of verdict.statuses) {
    if (status.limit === undefined) continue;
    if (status.overLimit && !status.quotaMode) {
      chosen = status;
      bar = 0;
    } else if (remainingOf(status) < bar) {
      chosen = status;
      bar = remainingOf(status);
    }
  }
  if (chosen?.limit === undefined) return undefined;
  return [
    { key: names.limit, value: `${chosen.limit.requestsPerUnit}` },
    { key: names.remaining, value: `${remainingOf(chosen)}` },
    { key: names.reset, value: `${secondsUntilReset(chosen)}` },
  ];
}
