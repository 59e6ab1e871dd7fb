// Requests that are charged as a whole or not at all, on every store: random ones against a naive model.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newDecision } from "../../src/core/decision.ts";
import type { Check, CheckMode } from "../../src/core/ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { HOUR, makeLimit } from "../support/make-limit.ts";
import { fc, test } from "../support/property.ts";
import { randomPrefix } from "../support/redis-store.ts";
import type { OpenStore, StoreUnderTest } from "./store-contract.ts";

const NAMES = ["a", "b", "c"] as const;
type Name = (typeof NAMES)[number];

/** Hits per hour of each counter. The clock stands still, so nothing ever comes back by itself. */
const LIMITS: Readonly<Record<Name, number>> = { a: 2, b: 4, c: 6 };
const ALGORITHMS = ["fixed_window", "gcra", "sliding_window_counter", "sliding_window_log"] as const;

interface Question {
  readonly name: Name;
  readonly hits: number;
  readonly role: number;
}

const question: fc.Arbitrary<Question> = fc.record({
  name: fc.constantFrom(...NAMES),
  hits: fc.integer({ min: -2, max: 4 }),
  role: fc.constantFrom(0, 0, -1, 1, 2),
});
const mode = fc.constantFrom<CheckMode>("atomic", "atomic", "atomic_refused", "atomic_quota_passes");
const request = fc.record({ mode, questions: fc.array(question, { minLength: 1, maxLength: 5 }) });
type Request = { readonly mode: CheckMode; readonly questions: readonly Question[] };

/** Changes `used` as the request must, and says which of its checks are allowed. */
function model(used: Record<Name, number>, { mode, questions }: Request, looksAtOne: boolean): boolean[] {
  const sum = (name: Name): number =>
    questions.filter((each) => each.name === name && each.hits > 0).reduce((total, each) => total + each.hits, 0);
  const room = ({ name, hits }: Question): boolean => {
    if (hits > 0) return used[name] + sum(name) <= LIMITS[name];
    return hits < 0 || used[name] + (looksAtOne ? 1 : 0) <= LIMITS[name];
  };
  // What is given back counts first.
  for (const { name, hits } of questions) if (hits < 0) used[name] = Math.max(0, used[name] + hits);
  const lacking = questions.map((each) => !room(each));
  const isOver = (role: number): boolean => questions.some((each, index) => each.role === role && lacking[index]);
  const quotas = [...new Set(questions.map(({ role }) => role).filter((role) => role > 0))];
  const refused =
    mode === "atomic_refused" ||
    isOver(0) ||
    (mode !== "atomic_quota_passes" && quotas.length > 0 && quotas.every(isOver));
  return questions.map((each, index) => {
    const { name, hits } = each;
    if (hits < 0) return true;
    if (hits > 0 && lacking[index] === true) return false;
    if (hits > 0 && !refused) {
      used[name] += hits;
      return true;
    }
    return used[name] + (looksAtOne ? 1 : 0) <= LIMITS[name];
  });
}

export function atomicContract(store: string, open: OpenStore): void {
  describe(`${store} charges atomic requests as a whole or not at all`, () => {
    const clock = new FakeClock();
    const prefix = randomPrefix();
    let opened: StoreUnderTest;
    let runs = 0;

    beforeAll(async () => {
      opened = await open(clock, prefix);
    });
    afterAll(() => opened.close());

    const ask = async (checks: readonly Check[], mode: CheckMode) => {
      const decisions = checks.map(newDecision);
      await opened.store.evaluate(checks, mode, decisions, 10_000);
      return decisions;
    };

    for (const algorithm of ALGORITHMS) {
      const checkOf = ({ name, hits, role }: Question): Check => ({
        key: `${prefix}${runs}:${name}`,
        limit: makeLimit({ algorithm, requestsPerUnit: LIMITS[name], periodUs: HOUR, countDenied: false }),
        hits,
        role,
      });

      test(`as a naive model does: ${algorithm}`, [fc.array(request, { minLength: 1, maxLength: 8 })], async (list) => {
        runs += 1;
        const used = { a: 0, b: 0, c: 0 };
        const looksAtOne = algorithm !== "fixed_window";
        for (const each of list) {
          const decisions = await ask(each.questions.map(checkOf), each.mode);
          expect(decisions.map(({ allowed }) => allowed)).toEqual(model(used, each, looksAtOne));
        }
        const looks = NAMES.map((name) => checkOf({ name, hits: 0, role: 0 }));
        expect((await ask(looks, "each")).map(({ remaining }) => remaining)).toEqual(
          NAMES.map((name) => LIMITS[name] - used[name]),
        );
      });
    }

    it("answers a refused check for its own hits and the others like looks", async () => {
      runs += 1;
      const limit = (requestsPerUnit: number) =>
        makeLimit({ algorithm: "gcra", requestsPerUnit, periodUs: HOUR, burst: requestsPerUnit });
      const checks = [
        { key: `${prefix}${runs}:few`, limit: limit(2), hits: 3 },
        { key: `${prefix}${runs}:many`, limit: limit(9), hits: 3 },
      ];
      expect(await ask(checks, "atomic")).toEqual([
        { allowed: false, remaining: 2, retryAfterUs: -1, resetAfterUs: 0, delayUs: 0 },
        { allowed: true, remaining: 9, retryAfterUs: 0, resetAfterUs: 0, delayUs: 0 },
      ]);
    });
  });
}
