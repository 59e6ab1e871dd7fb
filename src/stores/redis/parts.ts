// A request whose checks lie in several slots of a cluster, cut into parts of one slot each.
import type { Decision } from "../../core/decision.ts";
import type { Check } from "../../core/ports.ts";

export interface Part {
  readonly slot: number;
  readonly checks: Check[];
  /** At the indexes of the checks. */
  readonly decisions: Decision[];
}

/** The checks by their slots, in order within each. */
export function partsBySlot(
  checks: readonly Check[],
  decisions: readonly Decision[],
  slotOf: (key: string) => number,
): Part[] {
  const parts = new Map<number, Part>();
  for (const [index, check] of checks.entries()) {
    const decision = decisions[index];
    if (decision === undefined) throw new Error("there is a decision for every check");
    const slot = slotOf(check.key);
    const part = parts.get(slot);
    if (part === undefined) parts.set(slot, { slot, checks: [check], decisions: [decision] });
    else {
      part.checks.push(check);
      part.decisions.push(decision);
    }
  }
  return [...parts.values()];
}
