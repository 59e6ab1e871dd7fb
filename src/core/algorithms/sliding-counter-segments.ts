// Sliding window counter in segments: hits are counted per aligned segment, a part of the window, and a hit counts until
// as many segments as the window has have passed since its own. So never more than the limit passes in any window,
// wherever it begins; a hit may count for up to a segment longer than it must.
import type { Decision } from "../decision.ts";
import { type LimitSpec, MAX_EXACT } from "../limit-spec.ts";
import { type Algorithm, type Compiled, MAX_AHEAD_US, type Params } from "./algorithm.ts";
import { MAX_SLIDING_US } from "./sliding-counter.ts";

export interface SegmentsState {
  /** Segments since 1970; -1 for a counter that was never touched. */
  segment: number;
  /**
   * Hits in that segment, the one before, and so on: as many as the window has, and one more. 2^53-1 at the most.
   * A step puts a new list in its place.
   */
  counts: readonly number[];
}

/** Every decision looks at every segment. */
export const MAX_SEGMENTS = 100;

/** Parameters: [hits per window, segment in microseconds, segments per window, 1 if refused hits are charged]. */
function compile(spec: LimitSpec): Compiled {
  const { requestsPerUnit, periodUs, segments = 1 } = spec;
  if (periodUs > MAX_SLIDING_US) return { problem: "a sliding_window_counter may last 71 years at the most" };
  if (segments > periodUs) return { problem: `a window of ${periodUs} us is too short for ${segments} segments` };
  return { params: [requestsPerUnit, Math.ceil(periodUs / segments), segments, spec.countDenied ? 1 : 0] };
}

/** Statement by statement the same as `step_segments` in lua/sliding-counter-segments.lua. */
function step(state: SegmentsState, params: Params, nowUs: number, hits: number, out: Decision): boolean {
  const [limit = 0, segmentUs = 1, segments = 1, countDenied = 0] = params;
  const nowSegment = Math.floor(nowUs / segmentUs);
  let segment = state.segment;
  let changed = false;

  const passed = Math.max(0, nowSegment - segment);
  const counts: number[] = [];
  let used = 0;
  for (let back = 0; back <= segments; back++) {
    const count = back < passed ? 0 : (state.counts[back - passed] ?? 0);
    counts.push(count);
    used = used + count;
  }
  if (segment < nowSegment || used === 0) {
    segment = nowSegment;
  } else if (segment * segmentUs - nowUs > MAX_AHEAD_US) {
    // What lies ahead are hits of now.
    for (let back = 1; back <= segments; back++) {
      const count = counts[back] ?? 0;
      const target = Math.max(0, back - (segment - nowSegment));
      counts[back] = 0;
      counts[target] = (counts[target] ?? 0) + count;
    }
    segment = nowSegment;
    changed = true;
  }

  const asked = hits === 0 ? 1 : hits;
  const allowed = asked <= 0 || asked <= limit - used;
  if (hits > 0 && (allowed || countDenied === 1)) {
    const charged = Math.min(hits, MAX_EXACT - used);
    counts[0] = (counts[0] ?? 0) + charged;
    used = used + charged;
    changed = true;
  } else if (hits < 0 && used > 0) {
    // The newest are given back.
    let left = -hits;
    for (let back = 0; back <= segments; back++) {
      const taken = Math.min(left, counts[back] ?? 0);
      counts[back] = (counts[back] ?? 0) - taken;
      left = left - taken;
      used = used - taken;
    }
    changed = true;
  }

  out.allowed = allowed;
  out.remaining = Math.max(0, limit - used);
  if (allowed) out.retryAfterUs = 0;
  else if (asked > limit) out.retryAfterUs = -1;
  else {
    // The oldest leave until the hits fit.
    let left = used;
    let back = segments + 1;
    while (left > limit - asked) {
      back = back - 1;
      left = left - (counts[back] ?? 0);
    }
    out.retryAfterUs = (segment + segments + 1 - back) * segmentUs - nowUs;
  }
  out.resetAfterUs = used === 0 ? 0 : (segment + segments + 1 - newest(counts)) * segmentUs - nowUs;
  if (changed) {
    state.segment = segment;
    state.counts = counts;
  }
  return changed;
}

/** How many segments back the newest hits are; only for counts that are not all 0. */
function newest(counts: readonly number[]): number {
  let back = 0;
  while (counts[back] === 0) back = back + 1;
  return back;
}

export const slidingCounterSegments: Algorithm<SegmentsState> = {
  name: "sliding_window_counter.segments",
  shape: ({ segments = 1 }) => `sliding_window_counter.seg${segments}`,
  compile,
  init: () => ({ segment: -1, counts: [] }),
  step,
  ttlUs: ({ segment, counts }, [, segmentUs = 1, segments = 1], nowUs) => {
    if (counts.every((count) => count === 0)) return 0;
    return Math.max(0, (segment + segments + 1 - newest(counts)) * segmentUs - nowUs);
  },
};
