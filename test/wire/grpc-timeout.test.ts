import { expect, it } from "vitest";
import { parseTimeout } from "../../src/wire/grpc-timeout.ts";

it.each([
  ["0m", 0],
  ["20m", 20],
  ["1S", 1000],
  ["2M", 120_000],
  ["99999999H", 359_999_996_400_000],
  ["1500u", 1.5],
  ["500000n", 0.5],
  ["00000020m", 20],
])("the timeout %s is %d ms", (value, ms) => {
  expect(parseTimeout(value)).toBe(ms);
});

it.each(["", "m", "20", "-1m", "+1m", "1.5S", "20 m", " 20m", "20m ", "20s", "20ms", "100000000m", "0x1m", "1S, 1S"])(
  "the timeout %j is malformed",
  (value) => {
    expect(parseTimeout(value)).toBe(undefined);
  },
);
