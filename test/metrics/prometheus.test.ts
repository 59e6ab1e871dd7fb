import { describe, expect, it } from "vitest";
import { Counts } from "../../src/metrics/counts.ts";
import { createPage } from "../../src/metrics/prometheus.ts";
import { limiterOf, rulesOf } from "../support/limiter-of.ts";

const RULES = `
domain: d
descriptors:
  - key: a
    rate_limit: { unit: day, requests_per_unit: 2 }
    descriptors:
      - key: b
        value: x
        descriptors: [{ key: c, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 0 } }]
`;

const descriptor = (...keys: string[]) => ({
  entries: keys.map((key) => ({ key, value: "x" })),
  hitsAddend: undefined,
  isNegativeHits: false,
  limit: undefined,
});

describe("the page for Prometheus", () => {
  it("drops the series of rules that are gone", () => {
    const counts = new Counts();
    const { limiter } = limiterOf(RULES, { observer: counts });
    limiter.decide({ domain: "d", descriptors: [descriptor("a"), descriptor("a", "b", "c")], hitsAddend: 0 }, 0);
    expect(counts.rules.size).toBe(2);
    counts.keepOnly(rulesOf("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 9 } }]"));
    expect([...counts.rules.values()].map(({ key1, key2 }) => [key1, key2])).toEqual([["a", ""]]);
  });

  it("shows what was decided, by rule, and goes on counting after a reload", async () => {
    const counts = new Counts();
    const { limiter } = limiterOf(RULES, { observer: counts });
    const page = createPage(counts, [{ name: "weir_x", help: "x", kind: "gauge", read: () => 7 }]);
    const ask = (...descriptors: ReturnType<typeof descriptor>[]): void => {
      limiter.decide({ domain: "d", descriptors, hitsAddend: 0 }, 0);
    };
    ask(descriptor("a"), descriptor("a", "b", "c"));
    ask(descriptor("a"));
    limiter.tree = rulesOf(RULES);
    ask(descriptor("a"));
    ask({ ...descriptor("zzz"), limit: { requestsPerUnit: 1, unit: "hour", unitMultiplier: 1 } } as never);
    limiter.decide({ domain: "nope", descriptors: [descriptor("a")], hitsAddend: 0 }, 0);
    const lines = (await page.metrics()).split("\n").filter((line) => /^(ratelimit|weir)/.test(line));
    expect(lines).toEqual([
      'ratelimit_service_rate_limit_total_hits{domain="d",key1="a",key2=""} 3',
      'ratelimit_service_rate_limit_total_hits{domain="d",key1="a",key2="b_x.c"} 1',
      'ratelimit_service_rate_limit_total_hits{domain="d",key1="(override)",key2=""} 1',
      'ratelimit_service_rate_limit_within_limit{domain="d",key1="a",key2=""} 2',
      'ratelimit_service_rate_limit_within_limit{domain="d",key1="a",key2="b_x.c"} 0',
      'ratelimit_service_rate_limit_within_limit{domain="d",key1="(override)",key2=""} 1',
      'ratelimit_service_rate_limit_over_limit{domain="d",key1="a",key2=""} 1',
      'ratelimit_service_rate_limit_over_limit{domain="d",key1="a",key2="b_x.c"} 1',
      'ratelimit_service_rate_limit_over_limit{domain="d",key1="(override)",key2=""} 0',
      'ratelimit_service_rate_limit_shadow_mode{domain="d",key1="a",key2=""} 0',
      'ratelimit_service_rate_limit_shadow_mode{domain="d",key1="a",key2="b_x.c"} 1',
      'ratelimit_service_rate_limit_shadow_mode{domain="d",key1="(override)",key2=""} 0',
      "ratelimit_service_config_load_success 0",
      "ratelimit_service_config_load_error 0",
      "ratelimit_service_global_shadow_mode 0",
      "ratelimit_service_domain_not_found 1",
      "weir_x 7",
      'ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0',
      'ratelimit_service_should_rate_limit_error{err_type="service_error"} 0',
      'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 0',
    ]);
  });
});
