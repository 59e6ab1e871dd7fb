import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/core/errors.ts";
import type { LimiterOptions } from "../../src/core/limiter.ts";
import type { Store } from "../../src/core/ports.ts";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { shouldRateLimit } from "../../src/rls/service.ts";
import { GrpcCode, type UnaryHandler } from "../../src/wire/door.ts";
import { limiterOf } from "../support/limiter-of.ts";

const RULES = "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1 } }]";
const ASK = { domain: "d", descriptors: [{ entries: [{ key: "a", value: "x" }] }] };

const errors: unknown[] = [];

function service(rules: string | undefined, options: Partial<LimiterOptions> = {}): UnaryHandler {
  errors.length = 0;
  return shouldRateLimit({
    limiter: limiterOf(rules, options).limiter,
    limits: { maxDescriptors: 2, maxEntries: 2 },
    response: { headers: undefined, dynamicMetadata: false },
    onError: (error) => errors.push(error),
  });
}

function message(init: Parameters<typeof create<typeof RateLimitRequestSchema>>[1]): Uint8Array {
  return toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, init));
}

/** A store that records the budget and answers by `answer`. */
function storeOf(answer: () => undefined | Promise<void>, budgets: number[] = []): Store {
  return {
    evaluate: (_checks, _mode, _decisions, budgetMs) => {
      budgets.push(budgetMs);
      return answer();
    },
    reset: () => undefined,
    close: () => undefined,
  };
}

const NO_TIMEOUT = { timeoutMs: Number.POSITIVE_INFINITY };

describe("ShouldRateLimit", () => {
  it("answers at once when the store does", () => {
    expect(service(RULES)(message(ASK), NO_TIMEOUT)).toBeInstanceOf(Uint8Array);
  });

  it.each([
    ["no domain", { ...ASK, domain: "" }, GrpcCode.INVALID_ARGUMENT, "the rate limit domain must not be empty"],
    ["no descriptors", { domain: "d" }, GrpcCode.INVALID_ARGUMENT, "the descriptor list must not be empty"],
    ["an unusable override", { domain: "d", descriptors: [{ limit: {} }] }, GrpcCode.INVALID_ARGUMENT, "no valid unit"],
    ["too many descriptors", { domain: "d", descriptors: [{}, {}, {}] }, GrpcCode.RESOURCE_EXHAUSTED, "descriptors"],
    [
      "too many entries",
      { domain: "d", descriptors: [{ entries: [{}, {}, {}] }] },
      GrpcCode.RESOURCE_EXHAUSTED,
      "entries",
    ],
  ])("refuses %s", (_what, init, code, text) => {
    expect(() => service(RULES)(message(init), NO_TIMEOUT)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(text) }),
    );
    expect(errors).toHaveLength(1);
  });

  it("refuses bytes that are no request", () => {
    expect(() => service(RULES)(Buffer.from([0xff]), NO_TIMEOUT)).toThrow(
      expect.objectContaining({ code: GrpcCode.INVALID_ARGUMENT }),
    );
  });

  it("is unavailable without rules and when the store fails, at once or later", async () => {
    const unavailable = { code: GrpcCode.UNAVAILABLE };
    expect(() => service(undefined)(message(ASK), NO_TIMEOUT)).toThrow(expect.objectContaining(unavailable));
    const failure = new StoreError("gone", { transient: true });
    const later = service(RULES, { store: storeOf(() => Promise.reject(failure)) });
    await expect(later(message(ASK), NO_TIMEOUT)).rejects.toMatchObject({ ...unavailable, message: "gone" });
    expect(errors).toEqual([failure]);
  });

  it("lets our own bugs through as they are", () => {
    const bug = new Error("bug");
    const broken = service(RULES, {
      store: storeOf(() => {
        throw bug;
      }),
    });
    expect(() => broken(message(ASK), NO_TIMEOUT)).toThrow(bug);
  });

  it("leaves 2 ms of the call's time for the answer", async () => {
    const budgets: number[] = [];
    const handler = service(RULES, { store: storeOf(() => Promise.resolve(), budgets) });
    for (const timeoutMs of [20, 1, Number.POSITIVE_INFINITY]) await handler(message(ASK), { timeoutMs });
    expect(budgets).toEqual([18, 0, Number.POSITIVE_INFINITY]);
  });
});
