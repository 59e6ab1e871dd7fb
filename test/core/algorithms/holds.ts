// Which property holds for which algorithm. The property tests read this table: an algorithm without a row, or a row
// without an entry, does not compile.
import type { HandlerName } from "../../../src/core/algorithms/algorithm.ts";

export const PROPERTIES = {
  bound: "no interval admits more than the algorithm promises",
  agreement: "token bucket, leaky bucket and GCRA agree on every trace",
  tightRetry: "a refused request passes exactly when it was told to come back, and not a microsecond earlier",
  remaining: "what remains passes, and one more does not",
  looksAndRefusals: "looking and being refused leave the state as it was",
  looks: "looking leaves the state as it was",
  splitting: "a request in two parts is the request in one, when both fit",
  givingBack: "giving back undoes a charge at the same instant, and never lifts what remains above the limit",
  idleTime: "time that passes without requests never lowers what remains",
  clockBack: "a clock that steps back never raises what remains",
  expiry: "dropping a counter when its time is over changes no answer",
  resetAfter: "after the promised time the counter answers like a new one",
  changedLimit: "a changed limit admits no more than the new limit does",
  largest: "at the largest parameters that are accepted every number is exact",
} as const;

export type Property = keyof typeof PROPERTIES;

/** An algorithm or a form of one, and whether refused hits are charged. */
export type Variant = HandlerName | `${HandlerName}${typeof COUNTS}`;

const COUNTS = " that counts refused hits";

const REFUSED_COUNT = "refused hits are charged";

const WINDOW = {
  bound: true,
  agreement: "a window has nothing to agree with",
  tightRetry: true,
  remaining: true,
  looksAndRefusals: true,
  looks: true,
  splitting: true,
  givingBack: true,
  idleTime: true,
  clockBack: true,
  expiry: true,
  resetAfter: true,
  changedLimit: true,
  largest: true,
} as const;

const LEVEL = { ...WINDOW, agreement: true } as const;

const SHAPER = { ...WINDOW, agreement: "it delays where the others refuse" } as const;

const INTERVAL = { ...WINDOW, agreement: "its tokens come at once, not evenly" } as const;

const COUNTING = { looksAndRefusals: REFUSED_COUNT, splitting: REFUSED_COUNT } as const;

/** `true`, or why not. */
export const HOLDS: Readonly<Record<Variant, Readonly<Record<Property, true | string>>>> = {
  fixed_window: WINDOW,
  "fixed_window that counts refused hits": { ...WINDOW, ...COUNTING },
  gcra: LEVEL,
  "gcra that counts refused hits": { ...LEVEL, ...COUNTING },
  leaky_bucket: LEVEL,
  "leaky_bucket that counts refused hits": { ...LEVEL, ...COUNTING },
  "leaky_bucket.shaper": SHAPER,
  "leaky_bucket.shaper that counts refused hits": { ...SHAPER, ...COUNTING },
  sliding_window_counter: WINDOW,
  "sliding_window_counter that counts refused hits": { ...WINDOW, ...COUNTING },
  "sliding_window_counter.segments": WINDOW,
  "sliding_window_counter.segments that counts refused hits": { ...WINDOW, ...COUNTING },
  sliding_window_log: WINDOW,
  "sliding_window_log that counts refused hits": { ...WINDOW, ...COUNTING },
  token_bucket: LEVEL,
  "token_bucket that counts refused hits": { ...LEVEL, ...COUNTING },
  "token_bucket.interval": INTERVAL,
  "token_bucket.interval that counts refused hits": { ...INTERVAL, ...COUNTING },
};

/** The algorithm or form of a variant, and whether it charges refused hits. */
export function partsOf(variant: Variant): { handler: HandlerName; countDenied: boolean } {
  return { handler: variant.replace(COUNTS, "") as HandlerName, countDenied: variant.endsWith(COUNTS) };
}
