// Asks for a request whose checks cannot go out as one call: each part is judged by itself, and the request is answered
// when all parts are.
import { askAtomicParts } from "./atomic-parts.ts";
import type { CallMode } from "./batch.ts";
import type { Part } from "./parts.ts";

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
  if (parts.length > 1 && (mode === "atomic" || mode === "atomic_refused" || mode === "atomic_quota_passes")) {
    await askAtomicParts(parts, mode, ask);
    return;
  }
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
