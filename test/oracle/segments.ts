// Oracle for the sliding window counter in segments: the list of segments with hits, added up for every question.
import { earliest, LARGEST_EXACT, type Oracle, type OracleLimit, type OracleStep, TRUSTED_AHEAD_US } from "./oracle.ts";

export interface SegmentsModel {
  readonly segmentUs: bigint;
  /** A hit counts in its own segment and in so many more. */
  readonly segments: bigint;
  /** Number of the current segment since 1970. */
  readonly segment: bigint;
  /** Newest first. */
  readonly counts: readonly { readonly segment: bigint; readonly hits: bigint }[];
}

export const segmentsOracle: Oracle<SegmentsModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: (state, nowUs) => Number(earliest(BigInt(nowUs), (atUs) => usedAt(state, atUs) === 0n)),
};

function ask(
  state: SegmentsModel | undefined,
  limit: OracleLimit,
  nowUs: bigint,
  hits: bigint,
): OracleStep<SegmentsModel> {
  const most = BigInt(limit.requestsPerUnit);
  const segments = BigInt(limit.segments ?? 1);
  const segmentUs = (BigInt(limit.periodUs) + segments - 1n) / segments;
  const nowSegment = nowUs / segmentUs;
  const kept = state ?? { segmentUs, segments, segment: nowSegment, counts: [] };
  const moved = movedTo(kept, nowUs);
  const badClock = moved.segment * segmentUs - nowUs > TRUSTED_AHEAD_US;
  // What lies ahead are hits of now.
  const start = badClock ? noLater(moved, nowSegment) : moved;
  const used = usedAt(start, nowUs);

  const asked = hits === 0n ? 1n : hits;
  const allowed = hits < 0n || used + asked <= most;
  let next = start;
  if (hits > 0n && (allowed || limit.countDenied)) {
    const charged = used + hits > LARGEST_EXACT ? LARGEST_EXACT - used : hits;
    next = { ...start, counts: [{ segment: start.segment, hits: charged }, ...start.counts] };
  } else if (hits < 0n && used > 0n) {
    next = { ...start, counts: withoutNewest(start.counts, -hits) };
  }

  let retryAfterUs = 0n;
  if (!allowed) {
    retryAfterUs = asked > most ? -1n : earliest(nowUs, (atUs) => usedAt(next, atUs) + asked <= most) - nowUs;
  }
  const free = most - usedAt(next, nowUs);
  return {
    answer: {
      allowed,
      remaining: Number(free > 0n ? free : 0n),
      retryAfterUs: Number(retryAfterUs),
      resetAfterUs: Number(earliest(nowUs, (atUs) => usedAt(next, atUs) === 0n) - nowUs),
      delayUs: 0,
    },
    state: badClock || next !== start ? next : state,
  };
}

/** The current segment never goes back, unless nothing counts; and what is too old for it does not count again. */
function movedTo(model: SegmentsModel, atUs: bigint): SegmentsModel {
  const segment = atUs / model.segmentUs;
  if (segment <= model.segment && model.counts.some(({ hits }) => hits > 0n)) return model;
  return { ...model, segment, counts: model.counts.filter((count) => count.segment >= segment - model.segments) };
}

function noLater(model: SegmentsModel, last: bigint): SegmentsModel {
  const counts = model.counts.map(({ segment, hits }) => ({ segment: segment > last ? last : segment, hits }));
  return { ...model, segment: last, counts };
}

function usedAt(model: SegmentsModel, atUs: bigint): bigint {
  return movedTo(model, atUs).counts.reduce((sum, { hits }) => sum + hits, 0n);
}

function withoutNewest(counts: SegmentsModel["counts"], hits: bigint): SegmentsModel["counts"] {
  let left = hits;
  return counts.map((count) => {
    const kept = left < count.hits ? count.hits - left : 0n;
    left -= count.hits - kept;
    return { ...count, hits: kept };
  });
}

/** Hits of the current segment, the one before and so on, as many as count. */
export function hitsBySegment({ segment, segments, counts }: SegmentsModel): bigint[] {
  return Array.from({ length: Number(segments) + 1 }, (_, back) =>
    counts.reduce((sum, count) => (count.segment === segment - BigInt(back) ? sum + count.hits : sum), 0n),
  );
}
