import { fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { Descriptor, LimitRequest } from "../../src/core/descriptor.ts";
import type { LimiterOptions } from "../../src/core/limiter.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import { RateLimitResponseSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { encodeResponse, type ResponseOptions } from "../../src/rls/encode-response.ts";
import { limiterOf } from "../support/limiter-of.ts";
import { fc, test } from "../support/property.ts";

const HEADERS = { limit: "RateLimit-Limit", remaining: "RateLimit-Remaining", reset: "RateLimit-Reset" };
const PLAIN: ResponseOptions = { headers: undefined, dynamicMetadata: false };

function descriptor(key: string, value = "x", more: Partial<Descriptor> = {}): Descriptor {
  return { entries: [{ key, value }], hitsAddend: undefined, isNegativeHits: false, limit: undefined, ...more };
}

/** The answer as a foreign decoder reads it. */
function answer(
  yaml: string,
  descriptors: readonly Descriptor[],
  options: ResponseOptions = PLAIN,
  modes: Partial<LimiterOptions> = {},
  hitsAddend = 0,
): JsonValue {
  const request: LimitRequest = { domain: "d", descriptors, hitsAddend };
  const verdict = limiterOf(yaml, modes).limiter.decide(request, 0);
  if (verdict instanceof Promise) throw new Error("memory answers at once");
  return toJson(
    RateLimitResponseSchema,
    fromBinary(RateLimitResponseSchema, encodeResponse(request, verdict, options)),
  );
}

describe("an answer", () => {
  it("states every kind of period", () => {
    const yaml = `
domain: d
descriptors:
  - { key: week, rate_limit: { unit: week, requests_per_unit: 5, name: weekly } }
  - { key: three, rate_limit: { unit: minute, unit_multiplier: 3, requests_per_unit: 5 } }
  - { key: short, rate_limit: { period: 1500ms, requests_per_unit: 5 } }
  - { key: free, rate_limit: { unlimited: true } }
`;
    expect(
      answer(
        yaml,
        ["week", "three", "short", "free", "none"].map((key) => descriptor(key)),
      ),
    ).toEqual({
      overallCode: "OK",
      statuses: [
        {
          code: "OK",
          currentLimit: { requestsPerUnit: 5, unit: "WEEK", name: "weekly" },
          limitRemaining: 4,
          // 2026 begins on a Thursday, as weeks do.
          durationUntilReset: "604800s",
        },
        {
          code: "OK",
          currentLimit: { requestsPerUnit: 5, unit: "MINUTE", unitMultiplier: 3 },
          limitRemaining: 4,
          durationUntilReset: "180s",
        },
        { code: "OK", currentLimit: { requestsPerUnit: 5 }, limitRemaining: 4, durationUntilReset: "2s" },
        { code: "OK", limitRemaining: 4294967295 },
        { code: "OK" },
      ],
    });
  });

  it("tells when a refusal would pass, at least a second, and until reset when it never can", () => {
    const yaml = `
domain: d
descriptors:
  - { key: fast, rate_limit: { algorithm: gcra, unit: second, requests_per_unit: 1000, burst: 10 } }
  - { key: slow, rate_limit: { algorithm: token_bucket, unit: minute, requests_per_unit: 4, burst: 2 } }
`;
    const status = (hits: number, key: string): JsonValue => {
      const used = descriptor(key, "x", { hitsAddend: key === "fast" ? 10 : 2 });
      return answer(yaml, [used, descriptor(key, "x", { hitsAddend: hits })]);
    };
    expect(status(1, "fast")).toMatchObject({ statuses: [{}, { code: "OVER_LIMIT", durationUntilReset: "1s" }] });
    expect(status(1, "slow")).toMatchObject({ statuses: [{}, { code: "OVER_LIMIT", durationUntilReset: "15s" }] });
    expect(status(3, "slow")).toMatchObject({ statuses: [{}, { code: "OVER_LIMIT", durationUntilReset: "30s" }] });
  });

  const TWO = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: q, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 0 } }
`;

  it("brings headers of the lowest remaining, or of the last plain refusal, or none", () => {
    const options = { headers: HEADERS, dynamicMetadata: false };
    const headers = (...hits: [key: string, hits: number][]): JsonValue | undefined => {
      const asked = hits.map(([key, hitsAddend]) => descriptor(key, "x", { hitsAddend }));
      const json = answer(TWO, asked, options);
      return typeof json === "object" && json !== null && !Array.isArray(json)
        ? json["responseHeadersToAdd"]
        : undefined;
    };
    const three = (limit: number, remaining: number, reset: number): JsonValue => [
      { key: "RateLimit-Limit", value: `${limit}` },
      { key: "RateLimit-Remaining", value: `${remaining}` },
      { key: "RateLimit-Reset", value: `${reset}` },
    ];
    expect(headers(["a", 1], ["b", 1])).toEqual(three(2, 1, 3600));
    expect(headers(["a", 4], ["b", 3])).toEqual(three(2, 0, 3600));
    expect(headers(["a", 4], ["b", 1])).toEqual(three(3, 0, 86400));
    expect(headers(["q", 1], ["b", 1])).toEqual(three(0, 0, 3600));
    expect(headers(["none", 1])).toBeUndefined();
  });

  it("hides refusals from the overall code in shadow mode only", () => {
    const over = [descriptor("b", "x", { hitsAddend: 3 })];
    expect(answer(TWO, over)).toMatchObject({ overallCode: "OVER_LIMIT", statuses: [{ code: "OVER_LIMIT" }] });
    expect(answer(TWO, over, PLAIN, { shadowMode: true })).toMatchObject({
      overallCode: "OK",
      statuses: [{ code: "OVER_LIMIT" }],
    });
  });

  it("cleans names, which Envoy puts between quotes", () => {
    const yaml = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 3, name: "x\\"y\\\\z\\r\\nü" } }
`;
    expect(answer(yaml, [descriptor("a")])).toMatchObject({ statuses: [{ currentLimit: { name: "x_y_z__ü" } }] });
  });

  it("brings what was asked and the metadata of what passed, and never changes a rule", () => {
    const yaml = `
domain: d
descriptors:
  - key: a
    metadata: { pool: { one: 1 }, tag: first, list: [1, null, { x: true }] }
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: b
    metadata: { pool: { two: 2.5, one: other }, tag: second }
    rate_limit: { unit: day, requests_per_unit: 3 }
  - { key: c, metadata: { lost: 1 }, rate_limit: { unit: day, requests_per_unit: 0 } }
`;
    const { limiter } = limiterOf(yaml);
    const ask = (descriptors: Descriptor[], hitsAddend: number): JsonValue => {
      const request = { domain: "d", descriptors, hitsAddend };
      const bytes = encodeResponse(request, limiter.decide(request, 0) as Verdict, { ...PLAIN, dynamicMetadata: true });
      return toJson(RateLimitResponseSchema, fromBinary(RateLimitResponseSchema, bytes));
    };
    const override = { requestsPerUnit: 5, unit: "hour", unitMultiplier: 1 } as const;
    expect(ask([descriptor("a"), descriptor("b", "\xff", { hitsAddend: 1 }), descriptor("c")], 2)).toMatchObject({
      dynamicMetadata: {
        domain: "d",
        hitsAddend: 2,
        descriptors: [{ entries: ["a=x"] }, { entries: ["b=\\xff"], hitsAddend: 1 }, { entries: ["c=x"] }],
        metadata: { pool: { one: 1, two: 2.5 }, tag: "first", list: [1, null, { x: true }] },
      },
    });
    expect(ask([descriptor("a", "y")], 0)).toMatchObject({
      dynamicMetadata: { metadata: { pool: { one: 1 }, tag: "first" } },
    });
    expect(ask([descriptor("a", "z", { limit: override })], 0)).toMatchObject({
      dynamicMetadata: { domain: "d", descriptors: [{ entries: ["a=z"], limit: "requests_per_unit:5 unit:HOUR" }] },
    });
  });

  it("tells in the metadata how long a descriptor should wait, in whole milliseconds, where the request passes", () => {
    const yaml = `
domain: d
descriptors:
  - { key: slow, rate_limit: { algorithm: leaky_bucket, unit: second, requests_per_unit: 3, max_delay: 1s } }
  - { key: watched, shadow_mode: true, rate_limit: { algorithm: leaky_bucket, unit: hour, requests_per_unit: 3, max_delay: 1h } }
  - key: both
    rate_limits:
      - { algorithm: gcra, unit: hour, requests_per_unit: 9 }
      - { algorithm: leaky_bucket, unit: second, requests_per_unit: 100, max_delay: 1s }
      - { algorithm: leaky_bucket, unit: minute, requests_per_unit: 600, max_delay: 10s }
  - { key: never, rate_limit: { algorithm: gcra, unit: hour, requests_per_unit: 0 } }
`;
    const { limiter } = limiterOf(yaml);
    const ask = (...keys: string[]): unknown => {
      const request = { domain: "d", descriptors: keys.map((key) => descriptor(key)), hitsAddend: 0 };
      const bytes = encodeResponse(request, limiter.decide(request, 0) as Verdict, { ...PLAIN, dynamicMetadata: true });
      return fromBinary(RateLimitResponseSchema, bytes).dynamicMetadata?.["descriptors"];
    };
    const [slow, watched, both, never] = ["slow", "watched", "both", "never"].map((key) => ({ entries: [`${key}=x`] }));
    expect(ask("slow", "watched", "both")).toEqual([slow, watched, both]);
    expect(ask("slow", "watched", "both")).toEqual([
      { ...slow, delay_ms: 334 },
      watched,
      // What it tells of is the lowest remaining, of the first; what it waits for is the slowest, the third.
      { ...both, delay_ms: 100 },
    ]);
    // Refused as a whole, so nothing is to be waited for.
    expect(ask("both", "never")).toEqual([both, never]);
    expect(ask("slow")).toEqual([{ ...slow, delay_ms: 667 }]);
    expect(ask("slow")).toEqual([{ ...slow, delay_ms: 1000 }]);
    expect(ask("slow")).toEqual([slow]);
  });

  test(
    "is readable whatever stands in a request, a name or metadata",
    [fc.uint8Array({ maxLength: 300 }), fc.string({ unit: "binary", maxLength: 300 }), fc.jsonValue()],
    (bytes, name, json) => {
      const yaml = JSON.stringify({
        domain: "d",
        descriptors: [
          {
            key: "a",
            metadata: { json },
            rate_limit: { unit: "day", requests_per_unit: 3, name: name.toWellFormed().replace(/\p{C}/gu, "") },
          },
        ],
      });
      const value = Buffer.from(bytes).toString("latin1");
      expect(answer(yaml, [descriptor("a", value)], { headers: HEADERS, dynamicMetadata: true })).toMatchObject({
        overallCode: "OK",
      });
    },
  );
});
