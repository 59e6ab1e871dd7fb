// The answer to a whole request: a status for each descriptor, and how they merge.
import type { Decision } from "./decision.ts";
import type { Limit } from "./limit.ts";
import type { Rule } from "./rule-tree.ts";

/** The answer for one descriptor of a request. */
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
  readonly quotaMode: boolean;
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
