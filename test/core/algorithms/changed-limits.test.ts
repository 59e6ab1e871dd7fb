// Counters whose limit changes back and forth, without a store: every answer is the oracle's.
import { describe } from "vitest";
import { OracleFollower } from "../../oracle/follower.ts";
import { START_US } from "../../support/fake-clock.ts";
import { DAY, makeLimit, SECOND } from "../../support/make-limit.ts";
import { fc, test } from "../../support/property.ts";
import { Counter } from "./counter.ts";
import { limits, sameKey } from "./scenes.ts";

describe("a limit that changes back and forth is answered as the oracle does", () => {
  const change = fc.record({
    limit: fc.nat({ max: 2 }),
    by: fc.oneof(
      fc.constantFrom(0, 1, 333_334, SECOND, -1, -5 * SECOND, -5 * SECOND - 1),
      fc.integer({ min: 0, max: 10 * SECOND }),
      fc.integer({ min: 0, max: DAY }),
    ),
    hits: fc.oneof(fc.constantFrom(0, 1, -1, Number.MAX_SAFE_INTEGER), fc.integer({ min: -700, max: 1_000 })),
  });
  const changes = fc.array(change, { minLength: 2, maxLength: 25, size: "max" });

  // One for each kind of state.
  for (const variant of ["fixed_window", "token_bucket", "token_bucket.interval", "leaky_bucket.shaper"] as const) {
    const sketches = fc.array(limits(variant), { minLength: 2, maxLength: 3 });
    test(variant, [sketches, fc.boolean(), changes], (all, countDenied, steps) => {
      const [first, ...others] = all.map((sketch, _, [one = sketch]) =>
        makeLimit({ ...sameKey(sketch, one), countDenied }),
      );
      if (first === undefined) return;
      let counter = new Counter(first);
      const oracle = new OracleFollower();
      let nowUs = START_US;
      for (const { limit: index, by, hits } of steps) {
        const limit = [first, ...others][index % all.length] ?? first;
        nowUs += by;
        counter = counter.copy(limit);
        const answer = counter.ask(nowUs, hits);
        oracle.follow([{ key: "key", algorithm: limit.algorithm, limit, hits }], "each", nowUs, [answer]);
      }
    });
  }
});
