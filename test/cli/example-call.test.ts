import { expect, it } from "vitest";
import { exampleCall } from "../../src/cli/example-call.ts";
import { rulesOf } from "../support/limiter-of.ts";

it("runs into the rule that refuses soonest", () => {
  const tree = rulesOf(`
domain: d
descriptors:
  - { key: many, rate_limit: { unit: day, requests_per_unit: 50 } }
  - { key: few, rate_limit: { algorithm: gcra, unit: day, requests_per_unit: 50, burst: 3 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
`);
  const request = '{"domain":"d","descriptors":[{"entries":[{"key":"few","value":"demo"}]}]}';
  expect(exampleCall(tree, "0.0.0.0:8080")).toBe(
    `for i in $(seq 4); do curl -s -o /dev/null -w '%{http_code}\\n' -d '${request}' http://localhost:8080/json; done`,
  );
  expect(exampleCall(tree, "[::]:1")).toContain("http://localhost:1/json");
});

it("takes the limit of a window, which has no burst", () => {
  const rule = "{ key: few, rate_limit: { algorithm: sliding_window_log, unit: day, requests_per_unit: 2 } }";
  expect(exampleCall(rulesOf(`{ domain: d, descriptors: [${rule}] }`), "localhost:1")).toContain("$(seq 3)");
});

it("is silent when no rule would refuse after a few calls", () => {
  expect(exampleCall(rulesOf("domain: d"), "localhost:1")).toBeUndefined();
});
