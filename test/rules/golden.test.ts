// Rule files and what is said of them: one mistake per file under bad/, one idea per file under good/, and beside each
// the text an operator gets. A folder is a set of files; one whose name begins with `merge-` merges domains.
// WEIR_UPDATE_GOLDEN=1 rewrites the texts; the diff is read in review.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Rule } from "../../src/core/rule-tree.ts";
import { type CompileOutcome, compileRules } from "../../src/rules/compile.ts";
import type { RuleFile } from "../../src/rules/parse.ts";
import { formatProblem } from "../../src/rules/problem.ts";
import { sha256 } from "../support/sha256.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

function filesOf(room: string, name: string): RuleFile[] {
  const path = `${here}${room}/${name}`;
  if (name.endsWith(".yaml")) return [{ name, text: readFileSync(path, "utf8") }];
  return readdirSync(path).map((file) => ({ name: file, text: readFileSync(`${path}/${file}`, "utf8") }));
}

function compile(room: string, name: string): CompileOutcome {
  return compileRules(filesOf(room, name), { keyPrefix: "", mergeDomains: name.startsWith("merge-"), sha256 });
}

function expectGolden(room: string, name: string, lines: readonly string[]): void {
  const path = `${here}${room}/${basename(name, ".yaml")}.txt`;
  const text = `${lines.join("\n")}\n`;
  if (process.env["WEIR_UPDATE_GOLDEN"] === "1") writeFileSync(path, text);
  expect(text).toBe(existsSync(path) ? readFileSync(path, "utf8") : undefined);
}

function namesIn(room: string): string[] {
  return readdirSync(`${here}${room}`).filter((name) => !name.endsWith(".txt"));
}

function summary(rule: Rule): string[] {
  const { limit, keyPlan, metadata } = rule;
  const flags = [rule.unlimited && "unlimited", rule.shadowMode && "shadow", rule.quotaMode && "quota"];
  const size = limit?.maxDelayUs === undefined ? `burst ${limit?.burst}` : `delay ${limit.maxDelayUs} us`;
  const counts = limit && `${limit.requestsPerUnit} per ${limit.periodUs} us, ${size}`;
  const denied = limit?.countDenied === true && "counts denied";
  const said = [counts, denied, ...flags, rule.name && `name ${rule.name}`].filter((part) => typeof part === "string");
  const shared = keyPlan.sharedValues?.map((value) => value ?? "-").join(" ");
  return [
    `${rule.position}  ${rule.path}`,
    `  ${said.filter((part) => part !== "").join(", ")}`,
    `  key ${keyPlan.head}, ${keyPlan.tagEntries} in the tag${shared === undefined ? "" : `, shared ${shared}`}`,
    ...(rule.replaces.length === 0 ? [] : [`  replaces ${rule.replaces.join(", ")}`]),
    ...(metadata === undefined ? [] : [`  metadata ${JSON.stringify(metadata)}`]),
  ];
}

describe("a file with a mistake is refused with a message that says where and what to do", () => {
  it.each(namesIn("bad"))("%s", (name) => {
    const outcome = compile("bad", name);
    if (!("problems" in outcome)) throw new Error("it was accepted");
    const warnings = outcome.warnings.map((warning) => `warning: ${formatProblem(warning)}`);
    expectGolden("bad", name, [...outcome.problems.map(formatProblem), ...warnings]);
  });
});

describe("a good file becomes these rules", () => {
  it.each(namesIn("good"))("%s", (name) => {
    const outcome = compile("good", name);
    if ("problems" in outcome) throw new Error(outcome.problems.map(formatProblem).join("\n"));
    const warnings = outcome.warnings.map((warning) => `warning: ${formatProblem(warning)}`);
    expectGolden("good", name, [...outcome.tree.rules.flatMap(summary), ...warnings]);
  });
});
