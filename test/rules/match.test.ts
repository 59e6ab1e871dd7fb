import { describe, expect, it } from "vitest";
import { counterKey } from "../../src/core/counter-key.ts";
import type { Entry } from "../../src/core/descriptor.ts";
import { type DomainRules, match, overrideTagEntries } from "../../src/core/rule-tree.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { formatProblem } from "../../src/rules/problem.ts";
import { test } from "../support/property.ts";
import { sha256 } from "../support/sha256.ts";
import { aims, domains, type NaiveDomain, naiveMatch, requestsFor, textOf } from "./rule-sets.ts";

function compileText(text: string): DomainRules {
  const outcome = compileRules([{ name: "r.yaml", text }], { keyPrefix: "p:", mergeDomains: false, sha256 });
  if ("problems" in outcome) throw new Error(outcome.problems.map(formatProblem).join("\n"));
  const [domain] = outcome.tree.domains.values();
  if (domain === undefined) throw new Error("no domain");
  return domain;
}

/** The counter of each request that a rule applies to, and what a counter stands for. */
function countersOf(domain: NaiveDomain, list: readonly (readonly Entry[])[]): { key: string; identity: string }[] {
  const compiled = compileText(textOf(domain));
  return list.flatMap((entries) => {
    const plan = match(compiled, entries)[0]?.keyPlan;
    const naive = naiveMatch(domain, entries);
    if (plan === undefined || naive === undefined) return [];
    const { algorithm, periodSeconds } = naive.limit;
    const identity = JSON.stringify([algorithm, periodSeconds, domain.domain, naive.entries]);
    return [{ key: counterKey(plan, entries, sha256), identity }];
  });
}

function tagOf(key: string): string | undefined {
  return /\{([^}]*)\}/.exec(key)?.[1];
}

describe("a compiled tree", () => {
  test("finds the rule that a naive matcher finds", [domains, aims], (domain, aimed) => {
    const list = requestsFor(domain, aimed);
    const compiled = compileText(textOf(domain));
    for (const entries of list) expect(match(compiled, entries)[0]?.name).toBe(naiveMatch(domain, entries)?.name);
  });

  test(
    "gives requests one counter exactly when state, period, domain and entries are the same",
    [domains, aims],
    (domain, aimed) => {
      const list = requestsFor(domain, aimed);
      const counters = countersOf(domain, list);
      for (const one of counters) {
        for (const other of counters) expect(one.key === other.key).toBe(one.identity === other.identity);
      }
    },
  );

  test(
    "never gives one counter to different things, whatever the rules were before",
    [domains, domains, aims],
    (before, after, aimed) => {
      const list = [...requestsFor(before, aimed), ...requestsFor(after, aimed)];
      const old = new Map(countersOf(before, list).map(({ key, identity }) => [key, identity]));
      for (const { key, identity } of countersOf(after, list)) expect(old.get(key) ?? identity).toBe(identity);
    },
    { runs: 100 },
  );

  test(
    "keeps the counter of an override in the slot of the rule that it overrides",
    [domains, aims],
    (domain, aimed) => {
      const list = requestsFor(domain, aimed);
      const compiled = compileText(textOf(domain));
      for (const entries of list) {
        const [rule] = match(compiled, entries);
        if (rule !== undefined) expect(overrideTagEntries(compiled, entries)).toBe(rule.keyPlan.tagEntries);
      }
    },
  );

  it("keeps all counters of a tenant in one slot, whichever rule matched", () => {
    const domain = compileText(`
      domain: d
      descriptors:
        - key: tenant
          rate_limit: &limit { unit: hour, requests_per_unit: 1 }
          descriptors: [{ key: path, rate_limit: *limit }]
        - key: tenant
          value: acme
          rate_limit: *limit
          descriptors: [{ key: path, value: /a, rate_limit: *limit }]`);
    const keyOf = (entries: readonly Entry[]) => {
      const plan = match(domain, entries)[0]?.keyPlan;
      return plan === undefined ? undefined : counterKey(plan, entries, sha256);
    };
    const tenant = { key: "tenant", value: "acme" };
    const path = { key: "path", value: "/a" };
    expect(keyOf([tenant])).toBe("p:weir1:fixed_window:3600000000:{d|tenant=acme}");
    expect(keyOf([tenant, path])).toBe("p:weir1:fixed_window:3600000000:{d|tenant=acme}|path=/a");
    expect(keyOf([{ key: "tenant", value: "b" }, path])).toBe("p:weir1:fixed_window:3600000000:{d|tenant=b}|path=/a");
  });

  it("makes the entry that hash_tag names the tag, wherever it stands", () => {
    const domain = compileText(
      `{ domain: d, hash_tag: user, descriptors: [
        { key: path, descriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: 1 } }] }] }`,
    );
    const entries = [
      { key: "path", value: "/" },
      { key: "user", value: "ann" },
    ];
    const [rule] = match(domain, entries);
    expect(rule && tagOf(counterKey(rule.keyPlan, entries, sha256))).toBe("d|user=ann");
  });
});
