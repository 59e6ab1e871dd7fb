import { expect, it } from "vitest";
import { ruleList } from "../../src/admin/rule-list.ts";
import { rulesOf } from "../support/limiter-of.ts";

it("lists the rules in force as the peer does, and behind that what only weir has", () => {
  const tree = rulesOf(`
domain: d
descriptors:
  - { key: a, value: b, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: a, shadow_mode: true, quota_mode: true, rate_limit: { unlimited: true } }
  - { key: c, rate_limit: { algorithm: gcra, period: 90s, requests_per_unit: 3, burst: 7 } }
  - { key: log, rate_limit: { algorithm: sliding_window_log, unit: hour, requests_per_unit: 3 } }
  - { key: d, rate_limit: { period: 5ms, requests_per_unit: 3 } }
  - { key: e, rate_limit: { algorithm: leaky_bucket, unit: second, requests_per_unit: 3, max_delay: 200ms } }
`);
  expect(ruleList(tree).split("\n")).toEqual([
    "d.a_b: unit=DAY requests_per_unit=2, shadow_mode: false, quota_mode: false",
    "d.a: unit=UNKNOWN requests_per_unit=0, shadow_mode: true, quota_mode: true",
    "d.c: unit=SECOND requests_per_unit=3, shadow_mode: false, quota_mode: false, unit_multiplier: 90, algorithm: gcra, burst: 7",
    "d.log: unit=HOUR requests_per_unit=3, shadow_mode: false, quota_mode: false, algorithm: sliding_window_log",
    "d.d: unit=5000US requests_per_unit=3, shadow_mode: false, quota_mode: false",
    "d.e: unit=SECOND requests_per_unit=3, shadow_mode: false, quota_mode: false, algorithm: leaky_bucket, max_delay: 200000us",
    "",
  ]);
  expect(ruleList(undefined)).toBe("");
});
