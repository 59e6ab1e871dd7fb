// A request whose checks cannot go out as one call: each part is judged by itself, and the request is answered when all
// parts are.
import type { Decision } from "../../core/decision.ts";
import type { Check } from "../../core/ports.ts";
import type { CallMode } from "./batch.ts";

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

/**
 * Asks for all parts at once. `spare` takes two rounds over several parts, because what one part charges depends on the
 * others: the first only judges, the second charges all, or only what is refused. In between others may charge the same
 * counters, so a request that is refused only in the second round was charged for its other parts; a request that passes
 * was charged for all.
 */
export async function askParts(
  parts: readonly Part[],
  mode: CallMode,
  ask: (part: Part, mode: CallMode) => Promise<void>,
): Promise<void> {
  if (mode !== "spare" || parts.length === 1) {
    await Promise.all(parts.map((part) => ask(part, mode)));
    return;
  }
  await Promise.all(parts.map((part) => ask(part, "judge")));
  const refused = parts.flatMap(({ decisions }) => decisions).filter(({ allowed }) => !allowed);
  const refusals = refused.map((decision) => ({ ...decision }));
  await Promise.all(parts.map((part) => ask(part, refused.length === 0 ? "spare" : "spare_refused")));
  for (const [index, decision] of refused.entries()) {
    // What would pass by now was not charged, and neither were the others: the refusal stands.
    if (decision.allowed) Object.assign(decision, refusals[index]);
  }
}
