// The limiter: which checks a request asks of the store, and what it makes of the answers.
import { describe, expect, it } from "vitest";
import { type Decision, newDecision } from "../../src/core/decision.ts";
import type { LimitRequest } from "../../src/core/descriptor.ts";
import { NotReadyError, RequestError, StoreError } from "../../src/core/errors.ts";
import type { LimiterOptions } from "../../src/core/limiter.ts";
import type { Check, CheckMode, Store } from "../../src/core/ports.ts";
import type { Verdict } from "../../src/core/verdict.ts";
import { MemoryStore } from "../../src/stores/memory/store.ts";
import { descriptor, override, request } from "../support/descriptor.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { limiterOf, rulesOf } from "../support/limiter-of.ts";

/** Counts in memory and remembers what it was asked. */
class WatchedStore implements Store {
  readonly asked: { readonly checks: readonly Check[]; readonly mode: CheckMode; readonly budgetMs: number }[] = [];
  readonly #inner = new MemoryStore({ clock: new FakeClock(), maxCounters: 100 });

  evaluate(checks: readonly Check[], mode: CheckMode, decisions: readonly Decision[], budgetMs: number): undefined {
    this.asked.push({ checks, mode, budgetMs });
    this.#inner.evaluate(checks, mode, decisions);
  }

  get keys(): string[] {
    return this.asked.flatMap(({ checks }) => checks.map(({ key }) => key.replace("weir1:", "")));
  }

  reset(key: string): undefined {
    this.#inner.reset(key);
  }

  close(): undefined {
    this.#inner.close();
  }
}

function setUp(yaml: string | undefined, options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore();
  const told: string[] = [];
  const { limiter } = limiterOf(yaml, {
    store,
    observer: {
      decided: (domain, { refused, overLimit, rule }, hits) =>
        void told.push(
          `${domain} ${rule?.path ?? "override"} ${hits} ${overLimit ? "over" : refused ? "hidden" : "ok"}`,
        ),
      domainNotFound: (domain) => void told.push(`${domain} not found`),
      shadowed: () => void told.push("shadowed"),
    },
    ...options,
  });
  const decide = (asked: LimitRequest, budgetMs = 100): Verdict => {
    const verdict = limiter.decide(asked, budgetMs);
    if (verdict instanceof Promise) throw new Error("a store that answers at once made the limiter wait");
    return verdict;
  };
  /** Of each descriptor: `-` when nothing limits it, else what remains, or `over`. */
  const answers = (asked: LimitRequest): string[] =>
    decide(asked).statuses.map(({ decision, overLimit, rule }) => {
      if (rule?.unlimited === true) return "unlimited";
      if (decision === undefined) return "-";
      return overLimit ? "over" : `${decision.remaining}`;
    });
  return { limiter, store, told, decide, answers };
}

const RULES = `
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: user
    value: vip
    rate_limit: { unlimited: true }
  - key: tenant
    descriptors:
      - { key: path, value: /a, rate_limit: { unit: hour, requests_per_unit: 5, algorithm: gcra } }
  - key: closed
    rate_limit: { unit: hour, requests_per_unit: 0, algorithm: token_bucket }
  - key: shut
    rate_limit: { unit: hour, requests_per_unit: 0 }
`;

describe("a request", () => {
  it("is invalid without domain or descriptors, whatever the rules are", () => {
    for (const { decide, store } of [setUp(RULES), setUp(undefined)]) {
      expect(() => decide(request(["user=ann"], { domain: "" }))).toThrow(RequestError);
      expect(() => decide(request([]))).toThrow(RequestError);
      expect(store.asked).toEqual([]);
    }
  });

  it("cannot be answered before rules were loaded", () => {
    const { limiter, decide } = setUp(undefined);
    expect(limiter.tree).toBeUndefined();
    expect(() => decide(request(["user=ann"]))).toThrow(NotReadyError);
    limiter.tree = rulesOf(RULES);
    expect(decide(request(["user=ann"])).overLimit).toBe(false);
  });

  it("passes in a domain without rules; the observer hears of each descriptor", () => {
    const { answers, store, told } = setUp(RULES);
    const limited = descriptor("user=ann", { limit: override(1, "minute") });
    expect(answers(request(["user=ann", limited], { domain: "other" }))).toEqual(["-", "-"]);
    expect(told).toEqual(["other not found", "other not found"]);
    expect(store.asked).toEqual([]);
  });

  it("asks the store once, for what is limited, in order", () => {
    const { answers, store, told } = setUp(RULES);
    const asked = request(["tenant=acme|path=/a", "nothing=here", "user=ann", "user=vip", "user=ann", ""]);
    expect(answers(asked)).toEqual(["4", "-", "2", "unlimited", "1", "-"]);
    expect(store.asked).toMatchObject([{ mode: "each", budgetMs: 100 }]);
    expect(store.keys).toEqual([
      "gcra:3600000000:{edge|tenant=acme}|path=/a",
      "fixed_window:60000000:{edge|user=ann}",
      "fixed_window:60000000:{edge|user=ann}",
    ]);
    expect(told).toEqual(["edge edge.tenant.path_/a 1 ok", "edge edge.user 1 ok", "edge edge.user 1 ok"]);
  });

  it("asks the store nothing when nothing is limited", () => {
    const { answers, store, told } = setUp(RULES);
    expect(answers(request(["user=vip", "nothing=here"]))).toEqual(["unlimited", "-"]);
    expect(store.asked).toEqual([]);
    expect(told).toEqual([]);
  });

  it("takes the hits of the descriptor, else of the request", () => {
    const { decide, store } = setUp(RULES);
    const own = descriptor("user=b", { hitsAddend: 2 });
    const back = descriptor("user=c", { isNegativeHits: true });
    const look = descriptor("user=d", { hitsAddend: 0 });
    decide(request(["user=a", own, back, look], { hitsAddend: 7 }));
    decide(request(["user=a"]));
    expect(store.asked.map(({ checks }) => checks.map(({ hits }) => hits))).toEqual([[7, 2, -7, 0], [1]]);
  });

  it("that looks charges nothing, and is refused when one hit would not pass an algorithm with a rate", () => {
    const { answers } = setUp(RULES);
    const look = descriptor("tenant=acme|path=/a", { hitsAddend: 0 });
    expect(answers(request([look]))).toEqual(["5"]);
    expect(answers(request([descriptor("tenant=acme|path=/a", { hitsAddend: 5 })]))).toEqual(["0"]);
    expect(answers(request([look]))).toEqual(["over"]);
  });

  it("finishes with the rules it began with", async () => {
    const inner = new MemoryStore({ clock: new FakeClock(), maxCounters: 10 });
    let answer = (): void => {};
    const slow: Store = {
      evaluate: (checks, mode, decisions) =>
        new Promise((resolve) => {
          answer = () => resolve(inner.evaluate(checks, mode, decisions));
        }),
      reset: () => undefined,
      close: () => undefined,
    };
    const { limiter } = setUp(RULES, { store: slow });
    const pending = limiter.decide(request(["user=ann"]), 100);
    limiter.tree = rulesOf(RULES.replace("requests_per_unit: 3", "requests_per_unit: 1"));
    answer();
    expect((await pending).statuses).toMatchObject([{ limit: { requestsPerUnit: 3 }, decision: { remaining: 2 } }]);
  });

  it("fails as the store does, and the observer hears nothing", async () => {
    const failure = new StoreError("gone", { transient: true });
    const broken: Store = { evaluate: () => Promise.reject(failure), reset: () => undefined, close: () => undefined };
    const { limiter, told } = setUp(RULES, { store: broken });
    await expect(limiter.decide(request(["user=ann"]), 100)).rejects.toBe(failure);
    expect(told).toEqual([]);
  });
});

describe("a limit of zero", () => {
  it("of an algorithm with a rate refuses without a counter; giving back is answered OK", () => {
    const { decide, store, told } = setUp(RULES);
    for (const hitsAddend of [1, 0]) {
      const verdict = decide(request([descriptor("closed=x", { hitsAddend })]));
      expect(verdict).toMatchObject({
        overLimit: true,
        statuses: [{ decision: { allowed: false, remaining: 0, retryAfterUs: -1 } }],
      });
    }
    const back = decide(request([descriptor("closed=x", { isNegativeHits: true })]));
    expect(back).toMatchObject({ overLimit: false, statuses: [{ decision: { allowed: true, retryAfterUs: 0 } }] });
    expect(store.asked).toEqual([]);
    expect(told).toEqual(["edge edge.closed 1 over", "edge edge.closed 0 over", "edge edge.closed -1 ok"]);
  });

  it("of a fixed window refuses and counts, as at envoyproxy/ratelimit", () => {
    const { answers, store } = setUp(RULES);
    expect(answers(request(["shut=x"]))).toEqual(["over"]);
    expect(store.keys).toEqual(["fixed_window:3600000000:{edge|shut=x}"]);
  });

  it("spares the others of the request in check mode `spare`", () => {
    const { answers, store } = setUp(RULES, { checkMode: "spare" });
    expect(answers(request(["closed=x", "user=ann", "tenant=t|path=/a"]))).toEqual(["over", "3", "5"]);
    expect(store.asked).toMatchObject([{ mode: "spare_refused" }]);
    expect(answers(request(["user=ann"]))).toEqual(["2"]);
    expect(answers(request(["closed=x", descriptor("user=ann", { isNegativeHits: true })]))).toEqual(["over", "3"]);
  });

  it("does not hide another refusal in check mode `spare`", () => {
    const { answers } = setUp(RULES, { checkMode: "spare" });
    const tooMany = descriptor("user=ann", { hitsAddend: 4 });
    expect(answers(request(["closed=x", tooMany]))).toEqual(["over", "over"]);
    // The refused window counted its hits.
    expect(answers(request([descriptor("user=ann", { hitsAddend: 0 })]))).toEqual(["over"]);
  });
});

describe("replacing limits", () => {
  const yaml = `
domain: edge
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 10, name: a } }
  - { key: b, rate_limit: { unit: minute, requests_per_unit: 10, name: b, replaces: [{ name: a }] } }
  - { key: c, rate_limit: { unit: minute, requests_per_unit: 10, name: c, replaces: [{ name: b }] } }
  - { key: d, rate_limit: { unit: minute, requests_per_unit: 10, name: d, replaces: [{ name: e }] } }
  - { key: e, rate_limit: { unit: minute, requests_per_unit: 10, name: e, replaces: [{ name: d }] } }
  - { key: u, rate_limit: { unlimited: true, name: u, replaces: [{ name: a }, { name: unknown }] } }
  - { key: v, rate_limit: { unit: minute, requests_per_unit: 10, name: v, replaces: [{ name: u }] } }
  - { key: n, rate_limit: { unit: minute, requests_per_unit: 10 } }
`;
  it.each([
    [["a=1"], ["9"]],
    [
      ["a=1", "b=1"],
      ["-", "9"],
    ],
    [
      ["b=1", "a=1"],
      ["9", "-"],
    ],
    // A limit that is itself replaced still replaces: a chain leaves the last one.
    [
      ["a=1", "b=1", "c=1"],
      ["-", "-", "9"],
    ],
    [
      ["c=1", "a=1"],
      ["9", "9"],
    ],
    [
      ["d=1", "e=1"],
      ["-", "-"],
    ],
    // Unlimited rules replace, and are not replaced.
    [
      ["a=1", "u=1"],
      ["-", "unlimited"],
    ],
    [
      ["v=1", "u=1"],
      ["9", "unlimited"],
    ],
    [
      ["a=1", "a=2", "b=1"],
      ["-", "-", "9"],
    ],
    [
      ["n=1", "b=1"],
      ["9", "9"],
    ],
  ])("%j is answered %j", (asked, expected) => {
    const { answers, store, told } = setUp(yaml);
    expect(answers(request(asked))).toEqual(expected);
    // What was replaced is neither counted nor reported.
    const counted = expected.filter((answer) => answer === "9").length;
    expect(store.keys).toHaveLength(counted);
    expect(told).toHaveLength(counted);
  });

  it("does not reach into another request", () => {
    const { answers } = setUp(yaml);
    expect(answers(request(["b=1"]))).toEqual(["9"]);
    expect(answers(request(["a=1"]))).toEqual(["9"]);
  });
});

describe("limits that only watch or are soft", () => {
  const yaml = `
domain: edge
descriptors:
  - { key: plain, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: watched, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
`;
  const twice = (name: string) => descriptor(name, { hitsAddend: 2 });

  it("a shadow rule counts and reports a refusal, and hides it", () => {
    const { decide, told } = setUp(yaml);
    expect(decide(request([twice("watched=1")]))).toMatchObject({
      overLimit: false,
      shadowed: false,
      statuses: [{ refused: true, overLimit: false, decision: { allowed: false, remaining: 0 } }],
    });
    expect(told).toEqual(["edge edge.watched 2 hidden"]);
  });

  it("the server's shadow mode lets all pass, shows the statuses as they are, and says so once", () => {
    const { decide, told } = setUp(yaml, { shadowMode: true });
    const overriden = descriptor("x=1", { limit: override(0, "minute") });
    for (const refused of [twice("plain=1"), overriden, twice("quota=1")]) {
      expect(decide(request([refused]))).toMatchObject({
        overLimit: false,
        shadowed: true,
        statuses: [{ refused: true, overLimit: true }],
      });
    }
    expect(decide(request(["plain=2"]))).toMatchObject({ overLimit: false, shadowed: false });
    expect(told.filter((line) => line === "shadowed")).toHaveLength(3);
  });

  it("quota rules refuse only together", () => {
    const { decide } = setUp(yaml);
    expect(decide(request([twice("quota=1"), "quota=2"]))).toMatchObject({ overLimit: false });
    expect(decide(request([twice("quota=1"), "plain=1"]))).toMatchObject({ overLimit: true });
    expect(decide(request([twice("quota=1"), twice("quota=2")]))).toMatchObject({ overLimit: true });
  });

  it("the server's quota mode makes every descriptor soft", () => {
    const { decide } = setUp(yaml, { quotaMode: true });
    expect(decide(request([twice("plain=1"), "nothing=here"]))).toMatchObject({ overLimit: false });
    expect(decide(request([twice("plain=1")]))).toMatchObject({ overLimit: true });
  });
});

describe("a limit sent with a descriptor", () => {
  const limited = (text: string, limit: ReturnType<typeof override>) => descriptor(text, { limit });

  it("is used instead of the rule's, without its name, shadow mode and replacing", () => {
    const { decide, store } = setUp(RULES);
    const { statuses } = decide(request([limited("user=vip", override(7, "hour"))]));
    expect(statuses).toMatchObject([{ rule: undefined, quotaMode: false, limit: { requestsPerUnit: 7, name: "" } }]);
    expect(statuses).toMatchObject([{ decision: { allowed: true, remaining: 6 } }]);
    expect(store.keys).toEqual(["fixed_window:3600000000:{edge|user=vip}"]);
  });

  it("shares the counter of a fixed window over the same unit", () => {
    const { answers } = setUp(RULES);
    expect(answers(request(["user=ann"]))).toEqual(["2"]);
    expect(answers(request([limited("user=ann", override(10, "minute"))]))).toEqual(["8"]);
    expect(answers(request(["user=ann"]))).toEqual(["0"]);
    expect(answers(request([limited("user=ann", override(10, "second", 60))]))).toEqual(["6"]);
    expect(answers(request([limited("user=ann", override(10, "hour"))]))).toEqual(["9"]);
  });

  it("has the hash tag of the rule that would match; where none does, the next entry counts as open", () => {
    const { decide, store } = setUp(RULES);
    const limit = override(1, "second");
    const texts = [
      "tenant=t|path=/a",
      "tenant=t|path=/b",
      "tenant=t|other=x|more=y",
      "user=vip|more=y",
      "what=1|ever=2",
      "",
    ];
    decide(request(texts.map((text) => limited(text, limit))));
    expect(store.keys.map((key) => key.replace("fixed_window:1000000:", ""))).toEqual([
      "{edge|tenant=t}|path=/a",
      "{edge|tenant=t}|path=/b",
      "{edge|tenant=t}|other=x|more=y",
      "{edge|user=vip}|more=y",
      "{edge|what=1}|ever=2",
      "{edge}",
    ]);
  });

  it("of zero refuses everything, and counts", () => {
    const { answers } = setUp(RULES);
    expect(answers(request([limited("x=1", override(0, "minute"))]))).toEqual(["over"]);
    expect(answers(request([limited("x=1", override(1, "minute"))]))).toEqual(["over"]);
  });

  it.each([
    ["no unit", override(1, undefined)],
    ["a multiplier of zero", override(1, "second", 0)],
    ["a period of more than 142 years", override(1, "year", 143)],
    ["the largest multiplier", override(1, "year", 2 ** 32 - 1)],
  ])("that has %s makes the request invalid, and nothing is charged", (_, limit) => {
    const { limiter, store } = setUp(RULES);
    expect(() => limiter.decide(request(["user=ann", limited("x=1", limit)]), 100)).toThrow(RequestError);
    expect(store.asked).toEqual([]);
  });
});

describe("decisions", () => {
  it("start as passed, so that a store must say otherwise", () => {
    expect(newDecision()).toEqual({ allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: 0, delayUs: 0 });
  });
});

describe("several limits on a descriptor", () => {
  const SEVERAL = `
domain: edge
descriptors:
  - key: tenant
    rate_limits:
      - { unit: second, requests_per_unit: 2, algorithm: gcra }
      - { unit: minute, requests_per_unit: 3, name: minutely }
      - { unit: day, requests_per_unit: 2, name: daily }
  - key: plan
    rate_limit: { unlimited: true, replaces: [{ name: daily }] }
  - key: none
    rate_limit: { unlimited: true, replaces: [{ name: daily }, { name: minutely }] }
`;

  it("each have a counter of their own, and a series named after them or their number", () => {
    const { decide, store, told } = setUp(SEVERAL);
    decide(request(["tenant=a"]));
    expect(store.keys).toEqual([
      "gcra:1000000:{edge|tenant=a}",
      "fixed_window:60000000:{edge|tenant=a}",
      "fixed_window:86400000000:{edge|tenant=a}",
    ]);
    expect(told).toEqual(["edge edge.tenant.#1 1 ok", "edge edge.tenant.minutely 1 ok", "edge edge.tenant.daily 1 ok"]);
  });

  it("give one status: the lowest remaining (the first on a tie), or the refusal with the longest wait", () => {
    const { decide } = setUp(SEVERAL);
    const path = (): string | undefined => decide(request(["tenant=a"])).statuses[0]?.rule?.path;
    expect([path(), path()]).toEqual(["edge.tenant.#1", "edge.tenant.#1"]);
    const third = decide(request(["tenant=a"]));
    expect(third.overLimit).toBe(true);
    expect(third.statuses.map(({ rule, overLimit }) => [rule?.path, overLimit])).toEqual([["edge.tenant.daily", true]]);
    // More than a window can ever hold waits longest.
    const never = decide(request([descriptor("tenant=b", { hitsAddend: 3 })]));
    expect(never.statuses[0]?.rule?.path).toBe("edge.tenant.#1");
    expect(never.statuses[0]?.decision?.retryAfterUs).toBe(-1);
  });

  it("can be replaced one by one, by their names", () => {
    const { decide, store } = setUp(SEVERAL);
    decide(request(["tenant=a", "plan=x"]));
    expect(store.keys).toEqual(["gcra:1000000:{edge|tenant=a}", "fixed_window:60000000:{edge|tenant=a}"]);
    decide(request(["tenant=a", "none=x"]));
    expect(store.keys.slice(2)).toEqual(["gcra:1000000:{edge|tenant=a}"]);
  });
});

describe("an atomic domain", () => {
  const ATOMIC = `
domain: edge
atomic: true
descriptors:
  - { key: two, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: nine, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0, algorithm: gcra } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 0, algorithm: gcra } }
  - { key: small, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: large, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: empty, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 0, algorithm: gcra } }
  - { key: free, rate_limit: { unlimited: true } }
`;
  const THREE = { hitsAddend: 3 };

  it("charges a request to all of its limits or to none", () => {
    const { answers } = setUp(ATOMIC);
    expect(answers(request(["two=x", "nine=x"], THREE))).toEqual(["over", "9"]);
    expect(answers(request(["two=x", "nine=x"]))).toEqual(["1", "8"]);
    expect(answers(request(["none=x", "nine=x"]))).toEqual(["over", "8"]);
    expect(answers(request(["shadow=x", "nine=x", "free=x", "other=x"]))).toEqual(["0", "7", "unlimited", "-"]);
  });

  it("adds up what a request charges to one counter", () => {
    const { answers } = setUp(ATOMIC);
    expect(answers(request(["two=x", "two=x", "two=x"]))).toEqual(["over", "over", "over"]);
    expect(answers(request(["two=x", "two=x"]))).toEqual(["1", "0"]);
  });

  it("is refused by quotas only together, and charges those that have room", () => {
    const { answers, decide } = setUp(ATOMIC);
    const quotas = request(["small=x", "large=x"]);
    expect(answers(quotas)).toEqual(["0", "4"]);
    expect([decide(quotas).overLimit, answers(request([descriptor("large=x", { hitsAddend: 0 })]))]).toEqual([
      false,
      ["3"],
    ]);
    expect(decide(request(["small=x", "large=x"], { hitsAddend: 4 })).overLimit).toBe(true);
    expect(answers(request([descriptor("large=x", { hitsAddend: 0 })]))).toEqual(["3"]);
    expect(decide(request(["empty=x", "nine=x"])).overLimit).toBe(true);
    expect(answers(request(["empty=x", "large=x", "nine=x"]))).toEqual(["over", "2", "8"]);
  });

  it("counts what nothing limits as a quota that passes, where every descriptor is one", () => {
    const { answers, decide } = setUp(ATOMIC, { quotaMode: true });
    expect(decide(request(["two=x", "other=x"], THREE)).overLimit).toBe(false);
    expect(answers(request(["two=x", "other=x", "nine=x"], THREE))).toEqual(["over", "-", "6"]);
    expect(decide(request(["two=x", "nine=y"], { hitsAddend: 10 })).overLimit).toBe(true);
  });

  it("charges no refused hits of overrides either", () => {
    const { answers } = setUp(ATOMIC);
    const limited = descriptor("x=1", { limit: override(2, "hour") });
    expect(answers(request([limited], THREE))).toEqual(["over"]);
    expect(answers(request([limited]))).toEqual(["1"]);
  });
});
