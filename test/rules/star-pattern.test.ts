import { describe, expect, it } from "vitest";
import { starPattern } from "../../src/core/rule-tree.ts";
import { fc, test } from "../support/property.ts";

const texts = fc.string({ unit: fc.constantFrom("a", "b", "/", "*", ".", "\xff"), maxLength: 8 });

describe("star patterns", () => {
  test(
    "match what a regular expression with .* for each star matches",
    [texts, texts],
    (pattern, value) => {
      const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
      expect(starPattern(pattern).matches(value)).toBe(new RegExp(`^${parts.join(".*")}$`, "s").test(value));
    },
    {
      runs: 2000,
      examples: [
        ["a*a", "a"],
        ["a*a", "aa"],
        ["*", ""],
        ["a*ab*b", "aab"],
        ["b", "b"],
        ["b", "bb"],
      ],
    },
  );

  it("keeps its text and cannot be changed", () => {
    const pattern = starPattern("a*b");
    expect(pattern.text).toBe("a*b");
    expect(Object.isFrozen(pattern)).toBe(true);
  });
});
