import { describe, expect, it } from "vitest";
import { parseDuration } from "../../src/core/duration.ts";

describe("durations", () => {
  it.each([
    ["1us", 1],
    ["1µs", 1],
    ["500ms", 500_000],
    ["30s", 30_000_000],
    ["5m", 300_000_000],
    ["2h", 7_200_000_000],
    ["1d", 86_400_000_000],
    ["1h30m", 5_400_000_000],
    ["1.5h", 5_400_000_000],
    ["0.000001s", 1],
    ["0s1ms", 1_000],
  ])("%s is %d us", (text, us) => {
    expect(parseDuration(text)).toBe(us);
  });

  it.each([
    "",
    "5",
    "s",
    "-1s",
    "+1s",
    "1 s",
    "1S",
    "1w",
    "1ns",
    "0.5us",
    ".5s",
    "1.s",
    "1e3s",
    "1s ",
    `${"9".repeat(50)}s`,
  ])("%j is none", (text) => {
    expect(parseDuration(text)).toHaveProperty("problem");
  });
});
