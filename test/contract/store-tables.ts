// Histories of one counter as tables: exact answers at given times, the same for every store. They read as the
// specification of each algorithm; a comment stands where a rule shows.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/core/ports.ts";
import { FakeClock, START_US } from "../support/fake-clock.ts";
import { DAY, type LimitSketch, MINUTE, MS, makeLimit, SECOND } from "../support/make-limit.ts";
import { randomPrefix } from "../support/redis-store.ts";
import { ask, type OpenStore, type StoreUnderTest } from "./store-contract.ts";

/** [at ms, hits, allowed, remaining, reset ms, retry ms, delay ms where there is one] */
type Row = Undelayed | readonly [...Undelayed, number];
type Undelayed = readonly [number, number, "ok" | "no", number, number, number];

interface Table {
  readonly name: string;
  readonly limit: LimitSketch;
  readonly rows: readonly Row[];
}

/** A retry time of what can never pass. */
const NEVER = -1;

const TABLES: readonly Table[] = [
  {
    name: "fixed window: 5 a second, refused hits are counted",
    limit: { algorithm: "fixed_window", requestsPerUnit: 5, periodUs: SECOND },
    rows: [
      // at ms  hits  |     left  reset   retry
      [0, 1, "ok", 4, 1_000, 0],
      [250, 3, "ok", 1, 750, 0],
      [250, 2, "no", 0, 750, 750], // refused whole, and counted: 6 used
      [300, 0, "no", 0, 700, 700], // a look at more than the limit is refused
      [300, -2, "ok", 1, 700, 0], // 4 used
      [400, 1, "ok", 0, 600, 0],
      [400, 0, "ok", 0, 600, 600], // a look at exactly the limit is answered OK, though one hit must wait
      [999.999, 1, "no", 0, 0.001, 0.001],
      [1_000, 5, "ok", 0, 1_000, 0], // the next window begins on the second
      [1_500, 6, "no", 0, 500, NEVER], // more than the limit never passes
      [3_200, 0, "ok", 5, 800, 0],
    ],
  },
  {
    name: "fixed window: 5 a second, refused hits are not counted",
    limit: { algorithm: "fixed_window", requestsPerUnit: 5, periodUs: SECOND, countDenied: false },
    rows: [
      [0, 4, "ok", 1, 1_000, 0],
      [100, 2, "no", 1, 900, 900],
      [200, 1, "ok", 0, 800, 0],
      [200, 1, "no", 0, 800, 800],
      [300, -1, "ok", 1, 700, 0],
      [300, 1, "ok", 0, 700, 0],
    ],
  },
  {
    name: "fixed window: the clock steps back",
    limit: { algorithm: "fixed_window", requestsPerUnit: 5, periodUs: SECOND, countDenied: false },
    rows: [
      [10_000, 3, "ok", 2, 1_000, 0],
      [9_999, 1, "ok", 1, 1_001, 0], // still in the window of 10 s
      [5_000, 1, "ok", 0, 6_000, 0], // 5 s is still believed
      [5_000, 1, "no", 0, 6_000, 6_000],
      [4_999.999, 1, "no", 0, 0.001, 0.001], // 1 us more is not: the count moves to the window of now
      [4_999.999, 0, "ok", 0, 0.001, 0.001],
      [5_000, 1, "ok", 4, 1_000, 0],
    ],
  },
  {
    name: "fixed window: 0 a minute, counted all the same",
    limit: { algorithm: "fixed_window", requestsPerUnit: 0, periodUs: MINUTE },
    rows: [
      [0, 0, "ok", 0, 60_000, NEVER],
      [0, 1, "no", 0, 60_000, NEVER],
      [0, 0, "no", 0, 60_000, NEVER],
    ],
  },
  {
    name: "fixed window: a window is aligned to 1970, whatever its length",
    limit: { algorithm: "fixed_window", requestsPerUnit: 2, periodUs: 7 * DAY },
    rows: [
      // The clock starts on a Friday at 08:00; weeks start on Thursday at 00:00.
      [0, 1, "ok", 1, 5 * 86_400_000 + 16 * 3_600_000, 0],
      [5 * 86_400_000 + 16 * 3_600_000, 2, "ok", 0, 7 * 86_400_000, 0],
    ],
  },
  {
    name: "sliding log: 5 a second",
    limit: { algorithm: "sliding_window_log", requestsPerUnit: 5, periodUs: SECOND },
    rows: [
      // at ms  hits  |     left  reset   retry
      [0, 6, "no", 5, 0, NEVER],
      [0, 2, "ok", 3, 1_000, 0],
      [400, 2, "ok", 1, 1_000, 0],
      [700, 1, "ok", 0, 1_000, 0],
      [700, 0, "no", 0, 1_000, 300], // a look is answered as one hit would be
      [700, 3, "no", 0, 1_000, 700], // three fit when the hits of 0 and of 400 have left
      [999.999, 1, "no", 0, 700.001, 0.001],
      [1_000, 0, "ok", 2, 700, 0], // a hit leaves exactly a second after it came
      [1_000, 2, "ok", 0, 1_000, 0],
      [1_000, -1, "ok", 1, 1_000, 0], // given back from the newest
      [1_000, -2, "ok", 3, 400, 0], // also that of 700: those of 400 are left and leave first
      [1_000, -9, "ok", 5, 0, 0],
      [1_000, 5, "ok", 0, 1_000, 0],
      [2_000, 5, "ok", 0, 1_000, 0],
      [9_000, 0, "ok", 5, 0, 0],
    ],
  },
  {
    name: "sliding log: the clock steps back",
    limit: { algorithm: "sliding_window_log", requestsPerUnit: 3, periodUs: 10 * SECOND },
    rows: [
      [0, 1, "ok", 2, 10_000, 0],
      [20_000, 1, "ok", 2, 10_000, 0],
      [16_000, 1, "ok", 1, 14_000, 0], // as if it were 20 s: what had left the window does not come back
      [15_000, 2, "no", 1, 15_000, 15_000], // 5 s is still believed; times count from the clock
      [14_999.999, 0, "ok", 1, 10_000, 0], // 1 us more is not: hits ahead of the clock are hits of now
      [24_999.998, 2, "no", 1, 0.001, 0.001],
      [24_999.999, 3, "ok", 0, 10_000, 0],
    ],
  },
  {
    name: "sliding log: refused hits are counted when the rule says so",
    limit: { algorithm: "sliding_window_log", requestsPerUnit: 3, periodUs: SECOND, countDenied: true },
    rows: [
      [0, 2, "ok", 1, 1_000, 0],
      [300, 2, "no", 0, 1_000, 1_000], // 3 are remembered, the newest: 1 of 0 and 2 of 300
      [600, 1, "no", 0, 1_000, 700], // 2 of 300 and 1 of 600
      [999, 9, "no", 0, 1_000, NEVER], // 3 of 999
      [1_998.999, 1, "no", 0, 1_000, 0.001], // 2 of 999 and 1 of now
      [1_999, 1, "ok", 1, 1_000, 0],
      [1_999, -1, "ok", 2, 999.999, 0],
    ],
  },
  {
    name: "sliding counter: 10 in 10 s",
    limit: { algorithm: "sliding_window_counter", requestsPerUnit: 10, periodUs: 10 * SECOND },
    rows: [
      // at ms  hits  |     left  reset   retry
      [0, 11, "no", 10, 0, NEVER],
      [6_000, 8, "ok", 2, 14_000, 0],
      [7_000, 3, "no", 2, 13_000, 4_250], // at 11.25 s, 8.75 s of 10 are covered: 7 of 8 hits
      [11_249.999, 3, "no", 2, 8_750.001, 0.001],
      [11_250, 3, "ok", 0, 18_750, 0],
      [11_250, 0, "no", 0, 18_750, 1_250], // a look is answered as one hit would be
      [11_250, 10, "no", 0, 18_750, 18_750], // in the next window there are still 3: all ten only in the one after
      [11_250, 8, "no", 0, 18_750, 12_083.334], // at 23.3 s, 2/3 of 3 hits are covered
      [20_000, 0, "ok", 7, 10_000, 0], // of 8 nothing is covered, of 3 everything
      [20_000, 2, "ok", 5, 20_000, 0],
      [20_000, -4, "ok", 9, 10_000, 0], // the newest first: both of now, and 2 of the window before
      [20_000, -9, "ok", 10, 0, 0],
    ],
  },
  {
    name: "sliding counter: the clock steps back",
    limit: { algorithm: "sliding_window_counter", requestsPerUnit: 10, periodUs: 10 * SECOND },
    rows: [
      [5_000, 4, "ok", 6, 15_000, 0],
      [15_000, 2, "ok", 6, 15_000, 0], // half of 4
      [10_000, 0, "ok", 4, 20_000, 0], // all of 4 are covered again
      [5_000, 4, "ok", 0, 25_000, 0], // still in the window of 10 s, in which time has not begun: 5 s is still believed
      [5_000, 1, "no", 0, 25_000, 7_500], // times count from the clock
      [4_999.999, 1, "no", 0, 15_000.001, 6_000.001], // 1 us more is not: what counted was all hit now
      [9_999.999, 0, "no", 0, 10_000.001, 1_000.001],
    ],
  },
  {
    name: "sliding counter: refused hits are counted when the rule says so",
    limit: { algorithm: "sliding_window_counter", requestsPerUnit: 4, periodUs: 10 * SECOND, countDenied: true },
    rows: [
      [0, 3, "ok", 1, 20_000, 0],
      [0, 5, "no", 0, 20_000, NEVER], // 8 used
      [5_000, 0, "no", 0, 15_000, 11_250], // in the next window, when 3 of 8 are covered
      [16_250, 1, "ok", 0, 13_750, 0],
    ],
  },
  {
    name: "sliding counter: 10 in 10 s, in 5 segments",
    limit: { algorithm: "sliding_window_counter", requestsPerUnit: 10, periodUs: 10 * SECOND, segments: 5 },
    rows: [
      [1_000, 4, "ok", 6, 11_000, 0], // they count until five segments after their own have passed
      [3_000, 5, "ok", 1, 11_000, 0],
      [3_000, 5, "no", 1, 11_000, 9_000],
      [3_000, 6, "no", 1, 11_000, 11_000],
      [11_999.999, 5, "no", 1, 2_000.001, 0.001],
      [12_000, 5, "ok", 0, 12_000, 0],
      [12_000, 1, "no", 0, 12_000, 2_000],
      [12_000, -6, "ok", 6, 2_000, 0], // the newest first: 5 of now, and 1 of 3 s
      [8_000, 0, "ok", 6, 6_000, 0], // the clock steps back, and the segment of 12 s stays
      [6_999.999, 0, "ok", 6, 7_000.001, 0], // nor when it is from a bad clock: 4 hits of 3 s are none of the future
      [6_999.999, 2, "ok", 4, 11_000.001, 0],
      [12_000, 3, "ok", 1, 12_000, 0],
      [2_000, 0, "ok", 1, 12_000, 0], // all that lies ahead are hits of now
      [13_999.999, 2, "no", 1, 0.001, 0.001],
      [30_000, 10, "ok", 0, 12_000, 0],
    ],
  },
  {
    name: "gcra: 5 a second, burst 5",
    limit: { algorithm: "gcra", requestsPerUnit: 5, periodUs: SECOND },
    rows: [
      [0, 6, "no", 5, 0, NEVER],
      [0, 1, "ok", 4, 200, 0],
      [0, 4, "ok", 0, 1_000, 0],
      [0, 1, "no", 0, 1_000, 200],
      [0, 0, "no", 0, 1_000, 200], // a look is answered as one hit would be
      [199.999, 1, "no", 0, 800.001, 0.001],
      [200, 1, "ok", 0, 1_000, 0],
      [200, 3, "no", 0, 1_000, 600],
      [500, 1, "ok", 0, 900, 0], // 1.5 hits had drained
      [600, 1, "ok", 0, 1_000, 0],
      [600, -2, "ok", 2, 600, 0],
      [600, -9, "ok", 5, 0, 0],
      [600, 5, "ok", 0, 1_000, 0],
      [1_600, 0, "ok", 5, 0, 0],
    ],
  },
  {
    name: "gcra: 10 a minute, burst 1: one every 6 s",
    limit: { algorithm: "gcra", requestsPerUnit: 10, periodUs: MINUTE, burst: 1 },
    rows: [
      [0, 1, "ok", 0, 6_000, 0],
      [2_500, 1, "no", 0, 3_500, 3_500],
      [5_999.999, 1, "no", 0, 0.001, 0.001],
      [6_000, 1, "ok", 0, 6_000, 0],
      [6_000, 2, "no", 0, 6_000, NEVER],
    ],
  },
  {
    name: "leaky bucket: holds 2, leaks 4 a second",
    limit: { algorithm: "leaky_bucket", requestsPerUnit: 4, periodUs: SECOND, burst: 2 },
    rows: [
      [0, 3, "no", 2, 0, NEVER],
      [0, 2, "ok", 0, 500, 0],
      [100, 1, "no", 0, 400, 150], // 1.6 are in it
      [250, 1, "ok", 0, 500, 0],
      [300, -1, "ok", 1, 200, 0],
      [300, 1, "ok", 0, 450, 0],
      [750, 0, "ok", 2, 0, 0],
    ],
  },
  {
    name: "shaper: 5 a second, none waits longer than 400 ms",
    limit: { algorithm: "leaky_bucket", requestsPerUnit: 5, periodUs: SECOND, maxDelayUs: 400 * MS },
    rows: [
      // at ms  hits  |     left  reset   retry  delay
      [0, 4, "no", 3, 0, NEVER], // one leaves at once and two wait: a fourth never can
      [0, 1, "ok", 2, 200, 0],
      [0, 1, "ok", 1, 400, 0, 200],
      [0, 0, "ok", 1, 400, 0, 400], // a look is told what one hit would be
      [0, 2, "no", 1, 400, 200], // the second of them would wait for 600 ms
      [0, 1, "ok", 0, 600, 0, 400],
      [0, 0, "no", 0, 600, 200],
      [199.999, 1, "no", 0, 400.001, 0.001],
      [200, 1, "ok", 0, 600, 0, 400],
      [450, 1, "ok", 0, 550, 0, 350],
      [450, -2, "ok", 2, 150, 0],
      [450, 2, "ok", 0, 550, 0, 150], // told of the first; the last leaves 200 ms later
      [1_000, 0, "ok", 3, 0, 0],
    ],
  },
  {
    name: "shaper: 3 a second: a third of a second is no whole number of microseconds",
    limit: { algorithm: "leaky_bucket", requestsPerUnit: 3, periodUs: SECOND, maxDelayUs: SECOND },
    rows: [
      [0, 1, "ok", 3, 333.334, 0],
      [0, 1, "ok", 2, 666.667, 0, 333.334],
      [0, 1, "ok", 1, 1_000, 0, 666.667],
      [0, 1, "ok", 0, 1_333.334, 0, 1_000],
      [0, 1, "no", 0, 1_333.334, 333.334],
    ],
  },
  {
    name: "shaper: the clock steps back",
    limit: { algorithm: "leaky_bucket", requestsPerUnit: 1, periodUs: SECOND, maxDelayUs: 2 * SECOND },
    rows: [
      [10_000, 1, "ok", 2, 1_000, 0],
      [10_000, 1, "ok", 1, 2_000, 0, 1_000],
      [9_000, 1, "ok", 0, 4_000, 0, 2_000], // nobody moves up before 10 s, and nobody waits longer than 2 s
      [5_000, 1, "no", 0, 8_000, 6_000], // 5 s is still believed; times count from the clock
      [4_999.999, 1, "no", 0, 3_000, 1_000], // 1 us more is not: they move up from now on
      [5_999.999, 1, "ok", 0, 3_000, 0, 2_000],
    ],
  },
  {
    name: "shaper: refused hits are counted when the rule says so",
    limit: { algorithm: "leaky_bucket", requestsPerUnit: 1, periodUs: SECOND, maxDelayUs: SECOND, countDenied: true },
    rows: [
      [0, 2, "ok", 0, 2_000, 0],
      [0, 1, "no", 0, 3_000, 2_000],
      [0, 3, "no", 0, 6_000, NEVER],
      [5_000, 1, "ok", 0, 2_000, 0, 1_000],
    ],
  },
  {
    name: "token bucket: 3 a second, burst 2: a third of a second is no whole number of microseconds",
    limit: { algorithm: "token_bucket", requestsPerUnit: 3, periodUs: SECOND, burst: 2 },
    rows: [
      [0, 1, "ok", 1, 333.334, 0],
      [0, 1, "ok", 0, 666.667, 0],
      [0, 1, "no", 0, 666.667, 333.334],
      [333.333, 1, "no", 0, 333.334, 0.001],
      [333.334, 1, "ok", 0, 666.666, 0], // what is left of the microsecond is not lost
      [666.667, 1, "ok", 0, 666.667, 0],
      [1_000, 1, "ok", 0, 666.667, 0], // three in the first second after the burst
    ],
  },
  {
    name: "token bucket: 2 every 10 s, burst 5",
    limit: {
      algorithm: "token_bucket",
      requestsPerUnit: 2,
      periodUs: 10 * SECOND,
      refillIntervalUs: 10 * SECOND,
      burst: 5,
    },
    rows: [
      [3_000, 0, "ok", 5, 0, 0],
      [4_000, 6, "no", 5, 0, NEVER],
      [4_000, 4, "ok", 1, 20_000, 0], // the intervals begin here
      [9_000, 2, "no", 1, 15_000, 5_000],
      [9_000, 1, "ok", 0, 25_000, 0],
      [9_000, 3, "no", 0, 25_000, 15_000],
      [13_999.999, 1, "no", 0, 20_000.001, 0.001],
      [14_000, 2, "ok", 0, 30_000, 0],
      [30_000, 0, "ok", 2, 14_000, 0], // one interval and 6 s of the next, which are not lost
      [34_000, 4, "ok", 0, 30_000, 0],
      [34_000, -1, "ok", 1, 20_000, 0],
      [34_000, -9, "ok", 5, 0, 0],
      [40_000, 5, "ok", 0, 30_000, 0], // the bucket was full: the intervals begin anew
      [69_999.999, 5, "no", 4, 0.001, 0.001],
      [70_000, 5, "ok", 0, 30_000, 0],
    ],
  },
  {
    name: "token bucket: at intervals, the clock steps back",
    limit: {
      algorithm: "token_bucket",
      requestsPerUnit: 1,
      periodUs: SECOND,
      refillIntervalUs: SECOND,
      burst: 10,
    },
    rows: [
      [10_000, 9, "ok", 1, 9_000, 0],
      [9_000, 1, "ok", 0, 11_000, 0], // nothing comes back before 11 s
      [5_000, 1, "no", 0, 15_000, 6_000], // 5 s is still believed; times count from the clock
      [4_999.999, 1, "no", 0, 10_000, 1_000], // 1 us more is not: the interval begins now
      [5_999.999, 1, "ok", 0, 10_000, 0],
    ],
  },
  {
    name: "token bucket: a million a second",
    limit: { algorithm: "token_bucket", requestsPerUnit: 1_000_000, periodUs: SECOND, burst: 10 },
    rows: [
      [0, 10, "ok", 0, 0.01, 0],
      [0, 1, "no", 0, 0.01, 0.001],
      [0.001, 1, "ok", 0, 0.01, 0],
      [0.004, 3, "ok", 0, 0.01, 0],
    ],
  },
  {
    name: "token bucket: the clock steps back",
    limit: { algorithm: "token_bucket", requestsPerUnit: 1, periodUs: SECOND, burst: 10 },
    rows: [
      [10_000, 9, "ok", 1, 9_000, 0],
      [9_000, 1, "ok", 0, 11_000, 0], // nothing drains before 10 s
      [5_000, 1, "no", 0, 15_000, 6_000], // 5 s is still believed; times count from the clock
      [10_999.999, 1, "no", 0, 9_000.001, 0.001],
      [11_000, 1, "ok", 0, 10_000, 0],
      [5_999.999, 1, "no", 0, 10_000, 1_000], // 1 us more is not: the bucket drains from now on
      [6_999.999, 1, "ok", 0, 10_000, 0],
    ],
  },
  {
    name: "token bucket: refused hits are counted when the rule says so",
    limit: { algorithm: "token_bucket", requestsPerUnit: 1, periodUs: SECOND, burst: 2, countDenied: true },
    rows: [
      [0, 2, "ok", 0, 2_000, 0],
      [0, 1, "no", 0, 3_000, 2_000], // 3 used
      [0, 5, "no", 0, 8_000, NEVER], // 8 used
      [0, 0, "no", 0, 8_000, 7_000],
      [6_999.999, 0, "no", 0, 1_000.001, 0.001],
      [7_000, 1, "ok", 0, 2_000, 0],
    ],
  },
];

export function storeTables(name: string, open: OpenStore): void {
  describe(`${name}, to the microsecond`, () => {
    const clock = new FakeClock();
    const prefix = randomPrefix();
    let opened: StoreUnderTest;
    beforeAll(async () => {
      opened = await open(clock, prefix);
    });
    afterAll(() => opened.close());

    it.each(TABLES)("$name", async ({ name: key, limit, rows }) => {
      expect(await answers(opened.store, clock, `${prefix}${key}`, limit, rows)).toEqual(rows);
    });
  });
}

async function answers(
  store: Store,
  clock: FakeClock,
  key: string,
  sketch: LimitSketch,
  rows: readonly Row[],
): Promise<Row[]> {
  const limit = makeLimit(sketch);
  const found: Row[] = [];
  for (const [atMs, hits] of rows) {
    clock.set(START_US + Math.round(atMs * MS));
    const decision = await ask(store, { key, limit, hits });
    const row: Undelayed = [
      atMs,
      hits,
      decision.allowed ? "ok" : "no",
      decision.remaining,
      decision.resetAfterUs / MS,
      decision.retryAfterUs === -1 ? NEVER : decision.retryAfterUs / MS,
    ];
    found.push(decision.delayUs === 0 ? row : [...row, decision.delayUs / MS]);
  }
  return found;
}
