// Whatever is in a file, compiling it ends soon, with rules or with problems that point into it.
import { describe, expect, it } from "vitest";
import { compileRules } from "../../src/rules/compile.ts";
import { formatProblem, type Problem } from "../../src/rules/problem.ts";
import { MAX_ALIASED, MAX_LENGTH } from "../../src/rules/yaml-document.ts";
import { MAX_DEPTH } from "../../src/rules/yaml-stream.ts";
import { fc, test } from "../support/property.ts";
import { sha256 } from "../support/sha256.ts";

function problemsOf(text: string): readonly Problem[] {
  const outcome = compileRules([{ name: "f", text }], { keyPrefix: "", mergeDomains: false, sha256 });
  return "problems" in outcome ? outcome.problems : [];
}

function messagesOf(text: string): readonly string[] {
  return problemsOf(text).map(formatProblem);
}

const fragments = fc.constantFrom(
  ..."\n|  |- |: |? |[|]|{|}|, |'|\"|#|&a |*a|<<: |!!int |!x |%|~|yes|010|1.5|\\|\\x|\t|\r|---\n|...\n|\u2028|\ud800".split(
    "|",
  ),
  "|\n",
  ...[
    ..."descriptors rate_limit requests_per_unit unit period algorithm burst metadata replaces name value share_threshold".split(
      " ",
    ),
  ].map((word) => `${word}: `),
  ..."domain: d\n;descriptors:\n  - key: a\n;- key: b\n;unit: hour;period: 1s;requests_per_unit: 5".split(";"),
);
const texts = fc
  .array(fc.oneof(fragments, fc.string({ maxLength: 4 })), { maxLength: 40 })
  .map((parts) => parts.join(""));

describe("any text", () => {
  test(
    "becomes rules or problems that point into the file",
    [texts, fc.boolean()],
    (text, begun) => {
      const file = { name: "f", text: begun ? `domain: d\ndescriptors:\n  - key: a\n    ${text}` : text };
      const outcome = compileRules([file], { keyPrefix: "", mergeDomains: false, sha256 });
      const problems = "problems" in outcome ? outcome.problems : [];
      expect("tree" in outcome).toBe(problems.length === 0);
      const lines = file.text.split("\n");
      for (const problem of [...problems, ...outcome.warnings]) {
        expect(formatProblem(problem)).not.toMatch(/[\n\r]/);
        expect(problem.line).toBeGreaterThan(0);
        expect(problem.column).toBeGreaterThan(0);
        expect(problem.column).toBeLessThanOrEqual((lines[problem.line - 1] ?? "nowhere").length + 1);
        expect(problem.line).toBeLessThanOrEqual(lines.length);
      }
    },
    {
      runs: 400,
      examples: [
        ["]\n\u2028", false],
        ["}\n\ud800", false],
      ],
    },
  );
});

describe("a file", () => {
  it("must not be larger than the bound", () => {
    const text = `domain: d #${"x".repeat(MAX_LENGTH)}`;
    expect(messagesOf(text.slice(0, MAX_LENGTH))).toEqual([]);
    expect(messagesOf(text)).toEqual(["f:1:1  the file is larger than 4 MiB: split it"]);
  });

  it("must not nest deeper than the bound, written in any way", () => {
    const message = `this is nested more than ${MAX_DEPTH} levels deep`;
    const nested = (levels: number) => `{domain: d, metadata: ${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(messagesOf(nested(MAX_DEPTH - 1))).toEqual([]);
    expect(messagesOf(nested(MAX_DEPTH))).toEqual([`f:1:${23 + MAX_DEPTH - 1}  ${message}`]);
    expect(messagesOf("[".repeat(1_000_000))).toEqual([`f:1:${MAX_DEPTH + 1}  ${message}`]);
    expect(messagesOf("- ".repeat(10_000))).toEqual([`f:1:${2 * MAX_DEPTH + 1}  ${message}`]);
    expect(messagesOf("? ".repeat(10_000))).toEqual([`f:1:${2 * MAX_DEPTH + 1}  ${message}`]);
    const chain = Array.from({ length: MAX_DEPTH }, (_, at) => `- &a${at + 1} [*a${at}]\n`).join("");
    const [first = "", ...others] = messagesOf(`domain: d\nmetadata:\n- &a0 []\n${chain}`);
    for (const line of [first, ...others]) expect(line.endsWith(message)).toBe(true);
  });

  it("may have rules for descriptors of 64 entries", () => {
    let rules = "[{key: a, rate_limit: {unit: hour}}]";
    for (let level = 1; level < 64; level++) rules = `[{key: a, descriptors: ${rules}}]`;
    expect(messagesOf(`domain: d\ndescriptors: ${rules}`)).toEqual([]);
  });

  it("must not stand for more than the bound by its aliases", () => {
    const lists = Array.from(
      { length: 10 },
      (_, at) => `l${at + 1}: &l${at + 1} [${Array(10).fill(`*l${at}`).join(", ")}]\n`,
    );
    const laughs = `domain: d\nmetadata:\n  l0: &l0 [ha]\n  ${lists.join("  ")}`;
    expect(messagesOf(laughs)).toEqual([expect.stringMatching(/^f:\d+:\d+ {2}aliases multiply this file/)]);
    const many = (count: number) => `domain: d\nmetadata: [&a {}, ${Array(count).fill("*a").join(", ")}]`;
    expect(messagesOf(many(10_000))).toEqual([]);
    expect(MAX_ALIASED).toBeGreaterThan(10_000);
  });

  it("is refused at its first error of syntax, not at all that follow from it", () => {
    expect(messagesOf("]".repeat(100_000))).toHaveLength(1);
    expect(messagesOf('"'.repeat(1_001))).toHaveLength(1);
  });

  it("says everything that is wrong with it", () => {
    const rules = Array.from({ length: 1000 }, (_, at) => `  - key: k${at}\n    unknown: 1\n`).join("");
    expect(messagesOf(`domain: d\ndescriptors:\n${rules}`)).toHaveLength(1000);
  });
});
