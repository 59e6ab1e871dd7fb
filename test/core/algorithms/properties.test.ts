// The published properties of the algorithms, each on random pasts, for every algorithm for which it holds.
import { describe, expect, it } from "vitest";
import type { Limit } from "../../../src/core/limit.ts";
import { WINDOWS } from "../../../src/core/limit-spec.ts";
import { capacityOf } from "../../oracle/capacity.ts";
import { OracleFollower } from "../../oracle/follower.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, HOUR, type LimitSketch, MINUTE, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { mostTogether, mostWithin } from "./bounds.ts";
import { Counter } from "./counter.ts";
import { HOLDS, PROPERTIES, type Property, type Variant } from "./holds.ts";
import { largestLimits, limits, type sceneOf, scenes, sketchOf, someHits, someTimeUs } from "./scenes.ts";

const VARIANTS = Object.keys(HOLDS) as Variant[];
const someBackUs = fc.oneof(fc.constantFrom(1, 5 * SECOND, 5 * SECOND + 1), fc.integer({ min: 1, max: 20 * SECOND }));
const anyHits = fc.oneof(
  someHits,
  someHits.map((hits) => -hits),
  fc.constant(0),
);

const defined = new Set<Property>();

/** Defines a property's tests, one for each variant for which the table says that it holds. */
function property(name: Property, define: (variant: Variant, title: string) => void): void {
  defined.add(name);
  describe(PROPERTIES[name], () => {
    for (const variant of VARIANTS) if (HOLDS[variant][name] === true) define(variant, variant);
  });
}

property("bound", (variant, title) => {
  test(title, [scenes(variant)], ({ limit, log }) => {
    const passed = log.filter(({ allowed }) => allowed);
    for (const [from, first] of passed.entries()) {
      let sum = 0;
      for (const { atUs, hits } of passed.slice(from)) {
        sum += hits;
        expect(sum).toBeLessThanOrEqual(mostWithin(limit, first.atUs, atUs));
      }
    }
  });
});

property("agreement", (variant, title) => {
  test(title, [scenes(variant, anyHits)], ({ limit, log }) => {
    const one = new Counter(limit);
    const others = (["gcra", "leaky_bucket", "token_bucket"] as const)
      .filter((name) => name !== limit.algorithm)
      .map((algorithm) => new Counter(makeLimit({ ...limit, algorithm })));
    for (const { atUs, hits } of log) {
      const answer = one.ask(atUs, hits);
      for (const other of others) expect(other.ask(atUs, hits)).toEqual(answer);
    }
  });
});

property("tightRetry", (variant, title) => {
  const cases = fc.tuple(scenes(variant), someHits, fc.boolean(), fc.integer({ min: 0, max: 5 * SECOND }));
  test(title, [cases], ([{ counter, nowUs, limit }, someAsked, look, backUs]) => {
    const asked = look ? 1 : someAsked;
    const atUs = nowUs - backUs;
    const { allowed, retryAfterUs } = counter.ask(atUs, look ? 0 : asked);
    if (retryAfterUs === -1) expect(asked).toBeGreaterThan(capacityOf(limit));
    else if (retryAfterUs === 0) expect(allowed).toBe(true);
    else {
      expect(counter.copy().ask(atUs + retryAfterUs, asked).allowed).toBe(true);
      expect(counter.copy().ask(atUs + retryAfterUs - 1, asked).allowed).toBe(false);
    }
  });

  it(`${title}: also after the limit was changed`, () => {
    fc.assert(
      fc.property(scenes(variant), limits(variant), someHits, ({ counter, nowUs, limit }, sketch, asked) => {
        const changed = counter.copy(makeLimit(sameKey(sketch, limit)));
        const { retryAfterUs } = changed.ask(nowUs, asked);
        if (retryAfterUs <= 0) return;
        expect(changed.copy().ask(nowUs + retryAfterUs, asked).allowed).toBe(true);
        expect(changed.copy().ask(nowUs + retryAfterUs - 1, asked).allowed).toBe(false);
      }),
    );
  });
});

property("remaining", (variant, title) => {
  test(title, [scenes(variant, anyHits), fc.oneof(fc.constant(0), someBackUs)], ({ counter, nowUs }, backUs) => {
    const atUs = nowUs - backUs;
    const { remaining } = counter.ask(atUs, 0);
    if (remaining > 0) expect(counter.copy().ask(atUs, remaining)).toMatchObject({ allowed: true, remaining: 0 });
    expect(counter.copy().ask(atUs, remaining + 1).allowed).toBe(false);
  });
});

property("looks", (variant, title) => {
  test(title, [scenes(variant, anyHits), someTimeUs], ({ counter, nowUs }, laterUs) => {
    const before = counter.text();
    counter.ask(nowUs + laterUs, 0);
    expect(counter.text()).toBe(before);
  });
});

property("looksAndRefusals", (variant, title) => {
  test(title, [scenes(variant, anyHits), someTimeUs, someHits], ({ counter, nowUs }, laterUs, hits) => {
    const before = counter.text();
    const { remaining } = counter.ask(nowUs + laterUs, 0);
    expect(counter.ask(nowUs + laterUs, remaining + hits).allowed).toBe(false);
    expect(counter.text()).toBe(before);
  });
});

property("splitting", (variant, title) => {
  test(title, [scenes(variant, anyHits), fc.nat(), fc.nat()], ({ counter, nowUs }, one, two) => {
    const { remaining } = counter.ask(nowUs, 0);
    const first = one % (remaining + 1);
    const second = two % (remaining - first + 1);
    if (first === 0 || second === 0) return;
    const split = counter.copy();
    split.ask(nowUs, first);
    // Where hits wait, each part is told its own delay.
    const { delayUs } = split.copy().ask(nowUs, 0);
    expect(split.ask(nowUs, second)).toEqual({ ...counter.ask(nowUs, first + second), delayUs });
    expect(split.text()).toBe(counter.text());
  });
});

property("givingBack", (variant, title) => {
  test(title, [scenes(variant, anyHits), someHits, someTimeUs], ({ counter, limit, nowUs }, hits, laterUs) => {
    const charged = counter.copy();
    if (charged.ask(nowUs, hits).allowed) {
      expect(charged.ask(nowUs, -hits).allowed).toBe(true);
      for (const atUs of [nowUs, nowUs + laterUs])
        expect(charged.copy().ask(atUs, 0)).toEqual(counter.copy().ask(atUs, 0));
    }
    for (const back of [hits, 1, Number.MAX_SAFE_INTEGER]) {
      const { remaining } = counter.ask(nowUs, -back);
      expect(remaining).toBeLessThanOrEqual(capacityOf(limit));
    }
    expect(counter.ask(nowUs, 0).remaining).toBe(capacityOf(limit));
  });
});

property("idleTime", (variant, title) => {
  test(title, [scenes(variant, anyHits), someTimeUs], ({ counter, nowUs }, idleUs) => {
    const { remaining } = counter.copy().ask(nowUs, 0);
    expect(counter.ask(nowUs + idleUs, 0).remaining).toBeGreaterThanOrEqual(remaining);
  });
});

property("clockBack", (variant, title) => {
  test(
    title,
    [scenes(variant, anyHits), fc.array(someBackUs, { minLength: 1, maxLength: 4 })],
    ({ counter, nowUs }, backs) => {
      let { remaining } = counter.ask(nowUs, 0);
      let atUs = nowUs;
      for (const backUs of backs) {
        atUs -= backUs;
        const now = counter.ask(atUs, 0).remaining;
        expect(now).toBeLessThanOrEqual(remaining);
        remaining = now;
      }
    },
  );
});

const laterArrivals = fc.array(fc.record({ afterUs: someTimeUs, hits: anyHits }), { maxLength: 8 });

property("expiry", (variant, title) => {
  test(title, [scenes(variant, anyHits), someTimeUs, laterArrivals], ({ counter, limit, nowUs }, laterUs, arrivals) => {
    const dropped = nowUs + counter.ttlUs(nowUs) + laterUs;
    expectSameAnswers(counter, new Counter(limit), dropped, arrivals);
  });

  it(`${title}: also when the clock is behind the counter`, () => {
    fc.assert(
      fc.property(
        scenes(variant, anyHits),
        someBackUs,
        anyHits,
        laterArrivals,
        ({ counter, limit, nowUs }, backUs, hits, arrivals) => {
          const atUs = nowUs - backUs;
          counter.ask(atUs, hits);
          expectSameAnswers(counter, new Counter(limit), atUs + counter.ttlUs(atUs), arrivals);
        },
      ),
    );
  });
});

property("resetAfter", (variant, title) => {
  const cases = fc.tuple(scenes(variant, anyHits), fc.oneof(fc.constant(0), someBackUs), anyHits, laterArrivals);
  test(title, [cases], ([{ counter, limit, nowUs }, backUs, hits, arrivals]) => {
    const atUs = nowUs - backUs;
    const { resetAfterUs } = counter.ask(atUs, hits);
    expectSameAnswers(counter.copy(), new Counter(limit), atUs + resetAfterUs, arrivals);
    // And not before: something is still used.
    if (resetAfterUs > 0 && limit.algorithm !== "fixed_window") {
      const early = counter.ask(atUs + resetAfterUs - 1, 0).resetAfterUs;
      expect(early).toBeGreaterThan(0);
    }
  });
});

property("changedLimit", (variant, title) => {
  const cases = fc.tuple(
    scenes(variant),
    limits(variant),
    fc.array(fc.record({ afterUs: someTimeUs, hits: someHits })),
  );
  test(title, [cases], ([{ counter, nowUs, limit }, sketch, arrivals]) => {
    const changed = makeLimit(sameKey(sketch, limit));
    const after = counter.copy(changed);
    let atUs = nowUs;
    let sum = 0;
    for (const { afterUs, hits } of arrivals) {
      atUs += afterUs;
      const { allowed, remaining } = after.ask(atUs, hits);
      if (allowed) sum += hits;
      expect(remaining).toBeGreaterThanOrEqual(0);
      expect(remaining).toBeLessThanOrEqual(capacityOf(changed));
      expect(sum).toBeLessThanOrEqual(mostWithin(changed, nowUs, atUs));
    }
  });
});

property("largest", (variant, title) => {
  const steps = fc.array(
    fc.record({
      by: fc.oneof(
        fc.constantFrom(0, 1, -5 * SECOND, -5 * SECOND - 1),
        fc.integer({ min: 0, max: 365 * DAY }),
        fc.integer({ min: -DAY, max: 0 }),
      ),
      part: fc.double({ min: -1, max: 1, noNaN: true }),
      plus: fc.constantFrom(-1, 0, 1),
    }),
    { maxLength: 12 },
  );
  test(title, [largestLimits(variant), steps], (sketch, all) => {
    const limit = makeLimit(sketch);
    const counter = new Counter(limit);
    const oracle = new OracleFollower();
    let nowUs = START_US;
    for (const { by, part, plus } of [{ by: 0, part: 1, plus: 0 }, ...all]) {
      nowUs += by;
      for (const hits of [Math.round(part * capacityOf(limit)) + plus, Number.MAX_SAFE_INTEGER, 0]) {
        const check = { key: "key", algorithm: limit.algorithm, limit, hits };
        oracle.follow([check], "each", nowUs, [counter.ask(nowUs, hits)]);
      }
    }
  });
});

describe("two replicas whose limits differ for a while", () => {
  it("admit together what is right, however often they take turns", () => {
    const limitOf = (requestsPerUnit: number): Limit =>
      makeLimit({ algorithm: "token_bucket", requestsPerUnit, periodUs: MINUTE });
    const [one, two] = [limitOf(600), limitOf(607)];
    let counter = new Counter(one);
    let admitted = 0;
    for (let atMs = 0; atMs <= 300_000; atMs += 20) {
      counter = counter.copy(atMs % 40 === 0 ? one : two);
      if (counter.ask(START_US + atMs * 1_000, 1).allowed) admitted += 1;
    }
    // A full bucket and 5 minutes of 600 to 607; rounding may take a hit a minute.
    expect(admitted).toBeLessThanOrEqual(607 + 5 * 607);
    expect(admitted).toBeGreaterThanOrEqual(600 + 5 * 600 - 5);
  });

  // Small and slow, so that a full bucket is soon reached and every hit too many shows.
  const slow = (variant: Variant): fc.Arbitrary<LimitSketch> =>
    fc
      .record({
        requestsPerUnit: fc.integer({ min: 1, max: 12 }),
        periodUs: fc.constantFrom(HOUR, DAY),
        burst: fc.integer({ min: 1, max: 12 }),
      })
      .map((sketch) => sketchOf(variant, sketch));
  const turns = fc.array(
    fc.record({ afterUs: someTimeUs, hits: fc.integer({ min: 0, max: 3 }), second: fc.boolean() }),
    { maxLength: 40, size: "max" },
  );
  for (const variant of VARIANTS.filter((name) => HOLDS[name].changedLimit === true)) {
    const sketches = slow(variant);
    test(`${variant}: never admit more than the larger of both`, [sketches, sketches, turns], (one, other, all) => {
      const first = makeLimit(one);
      const second = makeLimit(sameKey(other, first));
      let counter = new Counter(first);
      let nowUs = START_US;
      let admitted = 0;
      for (const turn of all) {
        nowUs += turn.afterUs;
        counter = counter.copy(turn.second ? second : first);
        if (counter.ask(nowUs, turn.hits).allowed) admitted += turn.hits;
        expect(admitted).toBeLessThanOrEqual(mostTogether(first, second, nowUs));
      }
    });
  }
});

it("tests every property of the table", () => {
  expect([...defined].sort()).toEqual(Object.keys(PROPERTIES).sort());
});

function expectSameAnswers(one: Counter, two: Counter, fromUs: number, arrivals: Parameters<typeof sceneOf>[1]): void {
  let atUs = fromUs;
  for (const { afterUs, hits } of [{ afterUs: 0, hits: 0 }, ...arrivals]) {
    atUs += afterUs;
    expect(two.ask(atUs, hits)).toEqual(one.ask(atUs, hits));
  }
}

/** The sketch as a limit whose counter has the same key: windows of another length have counters of their own. */
function sameKey(sketch: Parameters<typeof makeLimit>[0], limit: Limit): Parameters<typeof makeLimit>[0] {
  return WINDOWS.has(limit.algorithm) ? { ...sketch, periodUs: limit.periodUs, segments: limit.segments } : sketch;
}
