import { describe, expect, it } from "vitest";
import { editDistance, nearestWord } from "../../src/rules/nearest-word.ts";
import { plainScalar, taggedScalar } from "../../src/rules/yaml-scalar.ts";
import { fc, test } from "../support/property.ts";

describe("plain scalars of YAML 1.1", () => {
  // What go-yaml v2.4.0 makes of each.
  it.each([
    ["true false yes no on off y n Y N Yes OFF", "boolean"],
    ["~ null Null NULL", "null"],
    ["0 7 -3 +3 010 0x1F 0X1f -0x10 0b11 0o17 1_000 1__0 0x_1 2147483648 9223372036854775808", "integer"],
    ["1.5 1. .5 -.5 +.5e3 1e3 1E-3 08 09 0_8 1_0.5 .5_0 .inf -.INF +.Inf .nan", "float"],
    [
      "yEs tRue nUll nil TRUe 0x 0xg 0b2 1e 1e999 . .. -. +- - + _1 1,000 12:30 2020-01-02 0o8 .5_ ._5 .5__0 1.2.3 ٣ é",
      "text",
    ],
  ])("%s: each is %s", (texts, kind) => {
    for (const text of texts.split(" ")) expect([text, plainScalar(text).kind]).toEqual([text, kind]);
  });

  it("have the values that go-yaml reads", () => {
    const numbers = "010 0x1F -0x10 0b11 0o17 1_000 +3 -0".split(" ");
    expect(numbers.map(plainScalar)).toEqual(
      [8n, 31n, -16n, 3n, 15n, 1000n, 3n, 0n].map((value) => ({ kind: "integer", value })),
    );
    expect(plainScalar("1_0.5e1")).toEqual({ kind: "float", value: 105 });
    expect(plainScalar("-.inf")).toEqual({ kind: "float", value: Number.NEGATIVE_INFINITY });
    expect(plainScalar("")).toEqual({ kind: "null" });
    expect(plainScalar("off")).toEqual({ kind: "boolean", value: false });
  });

  it("are never read at length", () => {
    expect(plainScalar("9".repeat(1_000_000))).toEqual({ kind: "text" });
  });

  it("may have a tag that says what they are", () => {
    const tagged = (text: string, name: string) => taggedScalar(text, `tag:yaml.org,2002:${name}`);
    expect(tagged("5", "str")).toEqual({ kind: "text" });
    expect(tagged("5", "int")).toEqual({ kind: "integer", value: 5n });
    expect(tagged("5", "float")).toEqual({ kind: "float", value: 5 });
    expect(tagged("yes", "bool")).toEqual({ kind: "boolean", value: true });
    expect(tagged("", "null")).toEqual({ kind: "null" });
    expect(taggedScalar("5", "!mine")).toEqual({ kind: "text" });
    for (const [text, name] of [
      ["x", "int"],
      ["1.5", "int"],
      ["1", "bool"],
      ["x", "set"],
    ] as const) {
      expect(tagged(text, name)).toHaveProperty("problem");
    }
  });
});

describe("the nearest word", () => {
  const words = ["requests_per_unit", "unit", "unlimited", "rate_limit", "replaces"];

  it.each([
    ["unlimied", "unlimited"],
    ["Unit", "unit"],
    ["unti", "unit"],
    ["ratelimit", "rate_limit"],
    ["rate-limit", "rate_limit"],
    ["requests_per_second", "requests_per_unit"],
    ["foo", undefined],
    ["version", undefined],
    ["", undefined],
  ])("to %j is %j", (written, word) => {
    expect(nearestWord(written, words)).toBe(word);
  });

  const short = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 });
  test("counts edits as naive recursion does", [short, short], (a, b) => {
    const naive = (i: number, j: number): number => {
      if (i === 0 || j === 0) return i + j;
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      return Math.min(
        naive(i - 1, j) + 1,
        naive(i, j - 1) + 1,
        naive(i - 1, j - 1) + (same ? 0 : 1),
        swapped ? naive(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    };
    expect(editDistance(a, b)).toBe(naive(a.length, b.length));
  });
});
