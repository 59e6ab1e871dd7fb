import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type DomainRules, match } from "../../src/core/rule-tree.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { rulesSchema } from "../../src/rules/json-schema.ts";
import { sha256 } from "../support/sha256.ts";

const config = new URL("../../config/", import.meta.url);
const files = readdirSync(new URL("rules/", config)).map((name) => ({
  name,
  text: readFileSync(new URL(`rules/${name}`, config), "utf8"),
}));

function compileExamples(): ReadonlyMap<string, DomainRules> {
  const outcome = compileRules(files, { keyPrefix: "", mergeDomains: false, sha256 });
  if ("problems" in outcome) throw new Error(JSON.stringify(outcome.problems));
  expect(outcome.warnings).toEqual([]);
  return outcome.tree.domains;
}

describe("the example rules", () => {
  it("load together without a problem or a warning, each in its own domain", () => {
    expect([...compileExamples().keys()].sort()).toEqual(files.map(({ name }) => name.replace(".yaml", "")).sort());
  });

  it("limit what the demonstration shows", () => {
    const edge = compileExamples().get("edge");
    if (edge === undefined) throw new Error("no domain edge");
    const limitOf = (...entries: [key: string, value: string][]) => {
      const [rule] = match(
        edge,
        entries.map(([key, value]) => ({ key, value })),
      );
      return rule && [rule.name, rule.limit?.requestsPerUnit, rule.limit?.unit];
    };
    expect(limitOf(["tenant", "globex"])).toEqual(["per-tenant", 5, "minute"]);
    expect(limitOf(["tenant", "globex"], ["path", "/export"])).toEqual(["export", 2, "minute"]);
    expect(limitOf(["tenant", "globex"], ["path", "/"])).toBeUndefined();
    expect(limitOf(["tenant", "acme"])).toEqual(["acme", 50, "minute"]);
    expect(limitOf(["tenant", "acme"], ["path", "/export"])).toEqual(["acme-export", 20, "minute"]);
    expect(limitOf(["remote_address", "192.0.2.1"])).toEqual(["per-address", 1000, "hour"]);
    expect(limitOf(["path", "/search/q"])).toEqual(["search", 100, "second"]);
  });

  it.each(files)("name the schema for editors: $name", ({ text }) => {
    expect(text.split("\n", 1)).toEqual(["# yaml-language-server: $schema=../rules.schema.json"]);
  });
});

describe("config/rules.schema.json", () => {
  it("is what the grammar says; `npm run gen` writes it anew", () => {
    expect(JSON.parse(readFileSync(new URL("rules.schema.json", config), "utf8"))).toEqual(rulesSchema());
  });
});
