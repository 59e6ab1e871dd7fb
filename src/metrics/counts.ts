// Counts what happens, in plain numbers: counting costs next to nothing, and `prometheus.ts` shows them when asked.

import type { ByteString } from "../core/descriptor.ts";
import type { Observer } from "../core/ports.ts";
import type { Rule, RuleTree } from "../core/rule-tree.ts";
import { toText } from "../core/text.ts";
import type { DescriptorStatus } from "../core/verdict.ts";

/** Hits of all rules that share one series. */
export interface RuleCounts {
  readonly domain: string;
  /** The outermost level of the rule. */
  readonly key1: string;
  /** All deeper levels, so that no two rules share a series. */
  readonly key2: string;
  totalHits: number;
  withinLimit: number;
  overLimit: number;
  /** Refused by a shadow rule, so let pass. */
  shadowMode: number;
}

/** Why a call ended without a verdict. */
export type ErrorKind = "redis_error" | "service_error";

/** What stands for the levels of a limit that a request brought along. */
const OVERRIDE_LEVELS: readonly string[] = ["(override)"];

export class Counts implements Observer {
  /** By domain and levels. Bounded by the rules in force: requests cannot add to it. */
  readonly rules = new Map<string, RuleCounts>();
  readonly errors: Record<ErrorKind, number> = { redis_error: 0, service_error: 0 };
  readonly loads = { success: 0, error: 0 };
  /** gRPC calls of ShouldRateLimit. */
  calls = 0;
  /** Descriptors of domains that have no rules. */
  domainsNotFound = 0;
  /** Requests that passed only because of SHADOW_MODE. */
  globalShadowMode = 0;
  readonly #byRule = new WeakMap<Rule, RuleCounts>();

  decided(domain: ByteString, status: DescriptorStatus, hits: number): void {
    if (hits <= 0) return;
    const counts =
      status.rule === undefined ? this.#series(domain, OVERRIDE_LEVELS) : this.#ofRule(domain, status.rule);
    counts.totalHits += hits;
    if (status.refused) counts.overLimit += hits;
    else counts.withinLimit += hits;
    if (status.refused && !status.overLimit) counts.shadowMode += hits;
  }

  /** Drops what was counted for rules that are no longer in force, so that reloads do not add up. */
  keepOnly(tree: RuleTree): void {
    const kept = new Set([...tree.domains.keys()].map((domain) => seriesId(domain, OVERRIDE_LEVELS)));
    for (const { domain, levels } of tree.rules) kept.add(seriesId(domain, levels));
    for (const id of this.rules.keys()) if (!kept.has(id)) this.rules.delete(id);
  }

  domainNotFound(): void {
    this.domainsNotFound += 1;
  }

  shadowed(): void {
    this.globalShadowMode += 1;
  }

  #ofRule(domain: ByteString, rule: Rule): RuleCounts {
    let counts = this.#byRule.get(rule);
    if (counts === undefined) {
      counts = this.#series(domain, rule.levels);
      this.#byRule.set(rule, counts);
    }
    return counts;
  }

  #series(domain: ByteString, levels: readonly string[]): RuleCounts {
    const id = seriesId(domain, levels);
    let counts = this.rules.get(id);
    if (counts === undefined) {
      const [key1 = "", ...deeper] = levels;
      counts = {
        domain: toText(domain),
        key1,
        key2: deeper.join("."),
        totalHits: 0,
        withinLimit: 0,
        overLimit: 0,
        shadowMode: 0,
      };
      this.rules.set(id, counts);
    }
    return counts;
  }
}

function seriesId(domain: ByteString, levels: readonly string[]): string {
  return JSON.stringify([domain, ...levels]);
}
