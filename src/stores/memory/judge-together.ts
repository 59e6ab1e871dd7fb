// What each check of a request may charge where the checks are judged together. The twin of lua/batch.lua.
import { MAX_EXACT } from "../../core/limit-spec.ts";
import type { Check, CheckMode } from "../../core/ports.ts";

/** How a check is answered. */
export interface Answering {
  /** Hits to answer for: the check's own, those of all checks of its counter, or 0 for a look. */
  readonly hits: number;
  /** Whether the counter may change. */
  readonly writes: boolean;
}

/** Tells whether hits fit a check's counter as it is (atomic refunds are made before), without a change to it. */
type Fits = (check: Check, hits: number) => boolean;

export function judgeTogether(checks: readonly Check[], mode: CheckMode, fits: Fits): readonly Answering[] {
  switch (mode) {
    case "each":
      return checks.map(({ hits }) => ({ hits, writes: true }));
    case "spare":
    case "spare_refused":
      return sparing(checks, mode === "spare_refused", fits);
    case "atomic":
    case "atomic_refused":
    case "atomic_quota_passes":
      return allOrNone(checks, mode, fits);
  }
}

/** Each check that would be refused is charged alone; if there is one, the others are only looked at. */
function sparing(checks: readonly Check[], refusedAlready: boolean, fits: Fits): Answering[] {
  const refused = checks.map((check) => !fits(check, check.hits));
  const any = refusedAlready || refused.includes(true);
  return checks.map(({ hits }, index) => ({
    hits: any && hits > 0 && refused[index] === false ? 0 : hits,
    writes: true,
  }));
}

function allOrNone(
  checks: readonly Check[],
  mode: "atomic" | "atomic_refused" | "atomic_quota_passes",
  fits: Fits,
): Answering[] {
  const sums = hitsByKey(checks);
  const summed = ({ key, hits }: Check): number => (hits > 0 ? (sums.get(key) ?? hits) : hits);
  const lacksRoom = checks.map((check) => check.hits >= 0 && !fits(check, summed(check)));
  const quotas = new Map<number, boolean>();
  let refused = mode === "atomic_refused";
  for (const [index, { role = 0 }] of checks.entries()) {
    const over = lacksRoom[index] === true;
    if (role === 0) refused ||= over;
    else if (role > 0) quotas.set(role, (quotas.get(role) ?? false) || over);
  }
  if (quotas.size > 0 && mode !== "atomic_quota_passes" && ![...quotas.values()].includes(false)) refused = true;
  return checks.map((check, index) => {
    if (check.hits <= 0) return { hits: check.hits, writes: true };
    if (lacksRoom[index] === true) return { hits: summed(check), writes: false };
    return refused ? { hits: 0, writes: false } : { hits: check.hits, writes: true };
  });
}

/** Hits that a request charges to each counter. */
function hitsByKey(checks: readonly Check[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { key, hits } of checks) if (hits > 0) sums.set(key, Math.min((sums.get(key) ?? 0) + hits, MAX_EXACT));
  return sums;
}
