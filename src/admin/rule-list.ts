// The rules in force as text, one line each, for /rlconfig: envoyproxy/ratelimit's line, and behind it what only weir has.
import type { Limit } from "../core/limit.ts";
import { WINDOWS } from "../core/limit-spec.ts";
import type { Rule, RuleTree } from "../core/rule-tree.ts";

/** Empty when no rules are loaded. */
export function ruleList(tree: RuleTree | undefined): string {
  return (tree?.rules ?? []).map((rule) => `${describe(rule)}\n`).join("");
}

function sizeOf({ algorithm, burst, maxDelayUs, segments }: Limit): string {
  if (WINDOWS.has(algorithm)) return segments === undefined ? "" : `, segments: ${segments}`;
  return maxDelayUs === undefined ? `, burst: ${burst}` : `, max_delay: ${maxDelayUs}us`;
}

function describe(rule: Rule): string {
  const { limit } = rule;
  const unit = limit === undefined ? "UNKNOWN" : (limit.unit ?? `${limit.periodUs}us`).toUpperCase();
  const flags = `shadow_mode: ${rule.shadowMode}, quota_mode: ${rule.quotaMode}`;
  const line = `${rule.path}: unit=${unit} requests_per_unit=${limit?.requestsPerUnit ?? 0}, ${flags}`;
  if (limit === undefined) return line;
  const own = [
    limit.unitMultiplier === 1 ? "" : `, unit_multiplier: ${limit.unitMultiplier}`,
    limit.algorithm === "fixed_window" ? "" : `, algorithm: ${limit.algorithm}${sizeOf(limit)}`,
  ];
  return line + own.join("");
}
