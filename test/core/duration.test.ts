import { describe, expect, it } from "vitest";
import { parseDurationUs } from "../../src/core/duration.ts";

describe("durations", () => {
  it.each([
    ["0", 0],
    ["150us", 150],
    ["1ms", 1_000],
    ["1.5s", 1_500_000],
    ["0.1s", 100_000],
    ["1h30m", 5_400_000_000],
    ["1d", 86_400_000_000],
  ])("%s is %d microseconds", (text, us) => expect(parseDurationUs(text)).toBe(us));

  it.each(["", "5", "s", "1 s", "-1s", "1x", "1s1", "0.5us", "1e3s", "99999999999d"])("%j is none", (text) =>
    expect(parseDurationUs(text)).toBeUndefined(),
  );
});
