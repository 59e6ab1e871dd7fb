// Oracle for the sliding window log: the list of all hits that still count, gone through for every question.
import {
  earliest,
  type Oracle,
  type OracleAnswer,
  type OracleLimit,
  type OracleStep,
  TRUSTED_AHEAD_US,
} from "./oracle.ts";

export interface LogModel {
  readonly periodUs: bigint;
  /** In order of time, one for each microsecond. */
  readonly entries: readonly LogEntry[];
}

export interface LogEntry {
  readonly atUs: bigint;
  readonly hits: bigint;
}

export const slidingLogOracle: Oracle<LogModel> = {
  ask: (state, limit, nowUs, hits) => [ask(state, limit, BigInt(nowUs), BigInt(hits))],
  freshFromUs: ({ entries, periodUs }, nowUs) => Number((entries.at(-1)?.atUs ?? BigInt(nowUs) - periodUs) + periodUs),
};

function ask(state: LogModel | undefined, limit: OracleLimit, nowUs: bigint, hits: bigint): OracleStep<LogModel> {
  const most = BigInt(limit.requestsPerUnit);
  const start: LogModel = state ?? { periodUs: BigInt(limit.periodUs), entries: [] };
  const current: LogModel = { ...start, entries: entriesAt(start, nowUs) };
  const newestUs = current.entries.at(-1)?.atUs ?? nowUs;
  const badClock = newestUs - nowUs > TRUSTED_AHEAD_US;
  const trusted = badClock
    ? { ...current, entries: merged(current.entries.map((entry) => noLater(entry, nowUs))) }
    : current;
  const used = sumOf(trusted.entries);

  const asked = hits === 0n ? 1n : hits;
  const allowed = hits < 0n || used + asked <= most;
  let next = trusted;
  if (hits > 0n && (allowed || limit.countDenied)) {
    const stampUs = trusted.entries.at(-1)?.atUs ?? nowUs;
    const entries = merged([...trusted.entries, { atUs: nowUs > stampUs ? nowUs : stampUs, hits }]);
    // As many as the limit are remembered, or as many as there were already under a larger one: the newest.
    next = {
      ...trusted,
      entries: allowed ? entries : withoutOldest(entries, sumOf(entries) - (used > most ? used : most)),
    };
  } else if (hits < 0n && used > 0n) {
    next = { ...trusted, entries: withoutOldest([...trusted.entries].reverse(), -hits).reverse() };
  }
  return {
    answer: answerOf(next, allowed, asked, most, nowUs),
    state: badClock || next !== trusted ? next : state,
  };
}

function answerOf(model: LogModel, allowed: boolean, asked: bigint, most: bigint, nowUs: bigint): OracleAnswer {
  const usedAt = (atUs: bigint): bigint => sumOf(entriesAt(model, atUs));
  let retryAfterUs = 0n;
  if (!allowed) retryAfterUs = asked > most ? -1n : earliest(nowUs, (atUs) => usedAt(atUs) + asked <= most) - nowUs;
  const free = most - usedAt(nowUs);
  return {
    allowed,
    remaining: Number(free > 0n ? free : 0n),
    retryAfterUs: Number(retryAfterUs),
    resetAfterUs: Number(earliest(nowUs, (atUs) => usedAt(atUs) === 0n) - nowUs),
    delayUs: 0,
  };
}

/** What counts once the clock shows `atUs`: nothing leaves the window while it is behind the newest entry. */
function entriesAt({ entries, periodUs }: LogModel, atUs: bigint): readonly LogEntry[] {
  const newestUs = entries.at(-1)?.atUs ?? atUs;
  const endUs = newestUs > atUs ? newestUs : atUs;
  return entries.filter((entry) => entry.atUs > endUs - periodUs);
}

function noLater({ atUs, hits }: LogEntry, nowUs: bigint): LogEntry {
  return { atUs: atUs < nowUs ? atUs : nowUs, hits };
}

function merged(entries: readonly LogEntry[]): LogEntry[] {
  const result: LogEntry[] = [];
  for (const entry of entries) {
    const last = result.at(-1);
    if (last?.atUs !== entry.atUs) result.push(entry);
    else result[result.length - 1] = { ...last, hits: last.hits + entry.hits };
  }
  return result;
}

/** Takes so many hits from the front. */
function withoutOldest(entries: readonly LogEntry[], hits: bigint): LogEntry[] {
  const result: LogEntry[] = [];
  let left = hits;
  for (const entry of entries) {
    if (entry.hits > left) result.push({ ...entry, hits: entry.hits - left });
    left = entry.hits > left ? 0n : left - entry.hits;
  }
  return result;
}

function sumOf(entries: readonly LogEntry[]): bigint {
  return entries.reduce((sum, { hits }) => sum + hits, 0n);
}
