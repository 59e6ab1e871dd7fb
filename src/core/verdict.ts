// The answer to a whole request: a status for each descriptor, and how they merge.
import type { Decision } from "./decision.ts";
import type { Limit } from "./limit.ts";
import type { Rule } from "./rule-tree.ts";

/** The answer for one limit of a descriptor; for the descriptor itself, that of the limit which tells most. */
export interface DescriptorStatus {
  /** The limit refused, which a shadow rule may hide. */
  readonly refused: boolean;
  /** The limit refused and the answer says so. */
  readonly overLimit: boolean;
  /** `undefined` when nothing limits the descriptor, when its rule was replaced, and for overrides. */
  readonly rule: Rule | undefined;
  /** `undefined` when nothing limits the descriptor. */
  readonly limit: Limit | undefined;
  readonly decision: Decision | undefined;
  /** Microseconds that what passes should wait: the longest delay of its limits. 0 for refusals and in shadow mode. */
  readonly delayUs: number;
  readonly quotaMode: boolean;
}

/**
 * Which of a descriptor's limits speaks for it: of the refused ones the one with the longest wait, else the one with the
 * lowest remaining; the first on a tie. Who passes waits for the slowest of them.
 *
 * @param statuses at least one
 */
export function tellingStatus(statuses: readonly DescriptorStatus[]): DescriptorStatus {
  const telling = statuses.reduce((best, next) => (tellsMore(next, best) ? next : best));
  const delayUs = telling.overLimit ? 0 : Math.max(...statuses.map((status) => status.delayUs));
  return delayUs === telling.delayUs ? telling : { ...telling, delayUs };
}

function tellsMore(next: DescriptorStatus, best: DescriptorStatus): boolean {
  if (next.refused !== best.refused) return next.refused;
  if (next.refused) return waitUs(next) > waitUs(best);
  return (next.decision?.remaining ?? Infinity) < (best.decision?.remaining ?? Infinity);
}

/** What can never pass waits longest. */
function waitUs({ decision }: DescriptorStatus): number {
  return decision === undefined || decision.retryAfterUs < 0 ? Infinity : decision.retryAfterUs;
}

/** The answer to a request. */
export interface Verdict {
  /** Whether the request is refused. */
  readonly overLimit: boolean;
  /** The request would have been refused, had the server not been in shadow mode. */
  readonly shadowed: boolean;
  /** One for each descriptor, in the request's order. */
  readonly statuses: readonly DescriptorStatus[];
}

/**
 * Merges the statuses: refused if a plain descriptor is over its limit, or if there are quota descriptors and every
 * one of them is over (envoyproxy/ratelimit: quota mode is a soft limit).
 *
 * `quotaMode` makes every descriptor a quota one, unmatched ones included; unlimited rules never take part.
 */
export function mergeStatuses(
  statuses: readonly DescriptorStatus[],
  modes: { readonly shadowMode: boolean; readonly quotaMode: boolean },
): Verdict {
  let plainOver = false;
  let quotas = 0;
  let quotasOver = 0;
  for (const status of statuses) {
    if (status.rule?.unlimited === true) continue;
    if (modes.quotaMode || status.quotaMode) {
      quotas += 1;
      if (status.overLimit) quotasOver += 1;
    } else if (status.overLimit) {
      plainOver = true;
    }
  }
  const over = plainOver || (quotas > 0 && quotas === quotasOver);
  return { overLimit: over && !modes.shadowMode, shadowed: over && modes.shadowMode, statuses };
}
