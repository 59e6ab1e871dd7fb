// A limiter over rules written in the test, on the memory store with a clock that the test moves.

import { Limiter, type LimiterOptions } from "../../src/core/limiter.ts";
import type { RuleTree } from "../../src/core/rule-tree.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { formatProblem } from "../../src/rules/problem.ts";
import { MemoryStore } from "../../src/stores/memory/store.ts";

import { sha256 } from "./sha256.ts";

/** Midnight, so that every window is as long as its unit. */
export const START_US = Date.UTC(2026, 0, 1) * 1_000;

export function rulesOf(yaml: string): RuleTree {
  const outcome = compileRules([{ name: "rules.yaml", text: yaml }], { keyPrefix: "", mergeDomains: false, sha256 });
  if ("problems" in outcome) throw new Error(outcome.problems.map(formatProblem).join("\n"));
  return outcome.tree;
}

/** @param yaml one file of rules; none leaves the limiter without */
export function limiterOf(
  yaml: string | undefined,
  options: Partial<LimiterOptions> = {},
): { limiter: Limiter; clock: { us: number } } {
  const clock = { us: START_US };
  const limiter = new Limiter({
    store: new MemoryStore({ clock: { nowUs: () => clock.us }, maxCounters: 1_000 }),
    observer: { decided: () => {}, domainNotFound: () => {}, shadowed: () => {} },
    sha256,
    keyPrefix: "",
    shadowMode: false,
    quotaMode: false,
    checkMode: "each",
    ...options,
  });
  if (yaml !== undefined) limiter.tree = rulesOf(yaml);
  return { limiter, clock };
}
