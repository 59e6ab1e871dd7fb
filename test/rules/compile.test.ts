import { describe, expect, it } from "vitest";
import { ALGORITHMS } from "../../src/core/algorithms/registry.ts";
import { match, type Rule, type RuleTree } from "../../src/core/rule-tree.ts";
import { toBytes } from "../../src/core/text.ts";
import { type CompileOptions, compileRules } from "../../src/rules/compile.ts";
import { formatProblem } from "../../src/rules/problem.ts";
import { sha256 } from "../support/sha256.ts";

const options: CompileOptions = { keyPrefix: "pre:", mergeDomains: false, sha256 };

function treeOf(text: string, changed: Partial<CompileOptions> = {}): RuleTree {
  const outcome = compileRules([{ name: "sub/r.yaml", text }], { ...options, ...changed });
  if ("problems" in outcome) throw new Error(outcome.problems.map(formatProblem).join("\n"));
  return outcome.tree;
}

function find(tree: RuleTree, domain: string, ...entries: [key: string, value: string][]): Rule | undefined {
  const rules = tree.domains.get(toBytes(domain));
  if (rules === undefined) throw new Error(`no domain ${domain}`);
  const [rule] = match(
    rules,
    entries.map(([key, value]) => ({ key: toBytes(key), value: toBytes(value) })),
  );
  return rule;
}

/** Maps cannot be frozen, and the algorithms are modules' own objects. */
function isDeeplyFrozen(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Object.values(ALGORITHMS).some((own) => own === value))
    return true;
  if (value instanceof Map) return [...value.values()].every(isDeeplyFrozen);
  return Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen);
}

describe("the largest limit of a sliding_window_log", () => {
  const problemsOf = (requestsPerUnit: number, changed: Partial<CompileOptions>): number => {
    const limit = `{ algorithm: sliding_window_log, unit: hour, requests_per_unit: ${requestsPerUnit} }`;
    const text = `{ domain: d, descriptors: [{ key: a, rate_limit: ${limit} }] }`;
    const outcome = compileRules([{ name: "r.yaml", text }], { ...options, ...changed });
    return "problems" in outcome ? outcome.problems.length : 0;
  };

  it.each<[number, Partial<CompileOptions>]>([
    [1_000, {}],
    [2, { slidingLogMax: 2 }],
    [10_000, { slidingLogMax: 10_000 }],
  ])("is %d with %j", (most, changed) => {
    expect(problemsOf(most, changed)).toBe(0);
    expect(problemsOf(most + 1, changed)).toBe(1);
  });
});

describe("compiling rules", () => {
  it("computes all that depends on a rule alone", () => {
    const tree = treeOf(`
domain: edge
descriptors:
  - key: tenant
    value: acme
    descriptors:
      - key: path
        shadow_mode: true
        quota_mode: yes
        metadata: { plan: gold }
        rate_limit: { unit: minute, requests_per_unit: 7, name: n, replaces: [{ name: other }] }
`);
    const rule = find(tree, "edge", ["tenant", "acme"], ["path", "/"]);
    expect(rule).toEqual({
      domain: "edge",
      path: "edge.tenant_acme.path",
      levels: ["tenant_acme", "path"],
      position: "sub/r.yaml:7:9",
      limit: expect.objectContaining({ requestsPerUnit: 7, periodUs: 60_000_000, unit: "minute", unitMultiplier: 1 }),
      unlimited: false,
      name: "n",
      replaces: ["other"],
      shadowMode: true,
      quotaMode: true,
      metadata: { plan: "gold" },
      keyPlan: {
        head: "pre:weir1:fixed_window:60000000:{edge",
        tagEntries: 2,
        sharedValues: undefined,
        hashTag: undefined,
      },
    });
    expect(tree.rules).toEqual([rule]);
  });

  it("freezes everything", () => {
    const tree = treeOf(`
domain: edge
hash_tag: a
descriptors:
  - key: a*
    value: b*
    share_threshold: true
    metadata: { list: [1, { deep: true }] }
    rate_limit: { unit: minute, replaces: [{ name: x }] }
    descriptors: [{ key: c, rate_limit: { unlimited: true } }]
`);
    expect(isDeeplyFrozen(tree)).toBe(true);
    const outcome = compileRules([{ name: "r.yaml", text: "- 1" }], options);
    expect(isDeeplyFrozen("problems" in outcome && outcome.problems)).toBe(true);
  });

  it("matches bytes, not UTF-16", () => {
    const tree = treeOf("domain: ü\ndescriptors: [{ key: é, value: 😀*, rate_limit: { unit: hour } }]");
    expect([...tree.domains.keys()]).toEqual(["\xc3\xbc"]);
    expect(find(tree, "ü", ["é", "😀!"])?.path).toBe("ü.é_😀*");
    expect(find(tree, "ü", ["e", "😀!"])).toBeUndefined();
  });

  it("reads lines that end as on Windows, after a byte order mark", () => {
    const tree = treeOf("\ufeffdomain: x\r\ndescriptors:\r\n  - key: a\r\n    rate_limit:\r\n      unit: hour\r\n");
    expect(find(tree, "x", ["a", "1"])?.position).toBe("sub/r.yaml:3:5");
  });

  it("takes a request that spells a pattern for the pattern's own rule", () => {
    const tree = treeOf(`
domain: d
descriptors:
  - { key: p, value: "f*", rate_limit: { unit: hour, name: first } }
  - { key: p, value: "fo*", rate_limit: { unit: hour, name: second } }
  - { key: "u*", rate_limit: { unit: hour, name: third } }
  - { key: "us*", value: v, rate_limit: { unit: hour, name: fourth } }
`);
    expect(find(tree, "d", ["p", "foo"])?.name).toBe("first");
    expect(find(tree, "d", ["p", "fo*"])?.name).toBe("second");
    expect(find(tree, "d", ["user", "v"])?.name).toBe("third");
    expect(find(tree, "d", ["us*", "v"])?.name).toBe("fourth");
  });

  it("tries stars of merged files in the order of the files' names", () => {
    const file = (name: string, value: string) => ({
      name,
      text: `domain: d\ndescriptors: [{ key: p, value: "${value}", rate_limit: { unit: hour, name: ${name} } }]`,
    });
    const outcome = compileRules([file("b", "*x"), file("a", "x*")], { ...options, mergeDomains: true });
    if ("problems" in outcome) throw new Error("refused");
    expect(find(outcome.tree, "d", ["p", "xx"])?.name).toBe("a");
    expect(outcome.tree.rules.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("has no rules where there are no files", () => {
    expect(compileRules([], options)).toEqual({ tree: { domains: new Map(), rules: [] }, warnings: [] });
  });

  it("leaves the prototype of metadata alone", () => {
    const tree = treeOf(
      "domain: d\ndescriptors: [{ key: k, metadata: { __proto__: { a: 1 } }, rate_limit: { unit: day } }]",
    );
    const metadata = find(tree, "d", ["k", ""])?.metadata;
    expect(Object.keys(metadata ?? {})).toEqual(["__proto__"]);
    expect(JSON.stringify(metadata)).toBe('{"__proto__":{"a":1}}');
  });
});
