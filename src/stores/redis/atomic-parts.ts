// Atomic requests whose counters lie in several slots of a cluster, which no single call can reach.
//
// A first round judges all parts and charges nothing. If the request is to pass, a second round charges each part as a
// whole; should one of them refuse meanwhile, what the others took is given back. So no limit is ever passed. Another
// request may be refused while hits are taken and not given back yet, and a crash in between leaves them charged until
// the window or the refill frees them.
import { newDecision } from "../../core/decision.ts";
import { hitsByKey, judgeTogether } from "../../core/judge-together.ts";
import type { Check, CheckMode } from "../../core/ports.ts";
import type { CallMode } from "./batch.ts";
import type { Part } from "./parts.ts";

type Ask = (part: Part, mode: CallMode) => Promise<void>;

export async function askAtomicParts(parts: readonly Part[], mode: CheckMode, ask: Ask): Promise<void> {
  const askAll = (some: readonly Part[], callMode: CallMode): Promise<unknown> =>
    Promise.all(some.map((part) => ask(part, callMode)));
  const checks = parts.flatMap((part) => part.checks);
  const decisions = parts.flatMap((part) => part.decisions);
  const sums = hitsByKey(checks);

  await askAll(
    select(parts, (check) => (check.hits < 0 ? check : undefined)),
    "each",
  );
  await askAll(
    select(parts, (check) =>
      check.hits < 0 ? undefined : { ...check, hits: check.hits && (sums.get(check.key) ?? 0) },
    ),
    "judge",
  );
  const fits = new Map(checks.map((check, index) => [check, decisions[index]?.allowed === true]));
  const answerings = judgeTogether(checks, mode, (check) => fits.get(check) === true);
  const charged = new Set(checks.filter((check, index) => check.hits > 0 && answerings[index]?.writes === true));
  const lookedAt = new Set(checks.filter((check, index) => check.hits > 0 && answerings[index]?.hits === 0));
  await askAll(looks(parts, lookedAt), "judge");
  if (charged.size > 0) await charge(parts, charged, ask);
}

/** Charges the chosen checks of every part, or of none. */
async function charge(parts: readonly Part[], charged: ReadonlySet<Check>, ask: Ask): Promise<void> {
  const touched = parts.filter((part) => part.checks.some((check) => charged.has(check)));
  const taking = select(touched, (check) => {
    // Shadow and quota checks had room when they were judged: whether they still have does not undo the others. Looks
    // go along, so that they see what stands before them in the request.
    if (charged.has(check)) return { ...check, role: isPlain(check) ? 0 : -1 };
    return check.hits === 0 ? { ...check, role: -1 } : undefined;
  });
  const outcomes = await Promise.allSettled(taking.map((part) => ask(part, "atomic")));
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  const took = taking.filter(
    (part, index) =>
      outcomes[index]?.status === "fulfilled" &&
      part.checks.every((check, at) => !isPlain(check) || part.decisions[at]?.allowed === true),
  );
  if (failure === undefined && took.length === taking.length) return;
  await Promise.all(took.map((part) => ask(givingBack(part), "each")));
  if (failure !== undefined) throw failure.reason;
  await Promise.all(took.map((part) => ask(looking(part), "judge")));
}

/** The parts with the checks that are chosen, as they are to be asked, and the decisions that belong to them. */
function select(parts: readonly Part[], choose: (check: Check) => Check | undefined): Part[] {
  const selected: Part[] = [];
  for (const { slot, checks, decisions } of parts) {
    const part: Part = { slot, checks: [], decisions: [] };
    for (const [index, check] of checks.entries()) {
      const chosen = choose(check);
      const decision = decisions[index];
      if (chosen === undefined || decision === undefined) continue;
      part.checks.push(chosen);
      part.decisions.push(decision);
    }
    if (part.checks.length > 0) selected.push(part);
  }
  return selected;
}

function isPlain({ role = 0 }: Check): boolean {
  return role === 0;
}

function looks(parts: readonly Part[], lookedAt: ReadonlySet<Check>): Part[] {
  return select(parts, (check) => (lookedAt.has(check) ? { ...check, hits: 0 } : undefined));
}

function looking({ slot, checks, decisions }: Part): Part {
  return { slot, checks: checks.map((check) => ({ ...check, hits: 0 })), decisions };
}

/** What a part took: a check that was refused took nothing. */
function givingBack({ slot, checks, decisions }: Part): Part {
  const took = checks.filter(({ hits }, index) => hits > 0 && decisions[index]?.allowed === true);
  return {
    slot,
    checks: took.map((check) => ({ ...check, hits: -check.hits })),
    decisions: took.map(newDecision),
  };
}
