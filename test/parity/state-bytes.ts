// What Redis keeps of a counter, and what it must be from the oracle's view of it: big-endian doubles, so the very bytes;
// of a log, which keeps more than it must, the part that counts.

import { totalCharged } from "../oracle/fixed-window.ts";
import { type Fraction, times } from "../oracle/fraction.ts";
import { hitsBySegment } from "../oracle/segments.ts";
import { waitParts } from "../oracle/shaper.ts";
import type { CounterModel } from "../oracle/worlds.ts";

/** What a counter must be kept as. */
export function stateText(counter: CounterModel): string {
  if (counter.kind === "log") return counter.state.entries.map(({ atUs, hits }) => `${hits} at ${atUs}`).join();
  return stateBytes(counter).toString("hex");
}

/** What a counter is kept as, in the same words. */
export function keptText(bytes: Buffer, counter: CounterModel | undefined): string {
  if (counter?.kind !== "log") return bytes.toString("hex");
  return entriesOf(bytes, Number(counter.state.periodUs))
    .map(({ atUs, hits }) => `${hits} at ${atUs}`)
    .join();
}

/** The entries of a log that are within the window and not forgotten. Sums are kept modulo 2^32. */
function entriesOf(bytes: Buffer, periodUs: number): { atUs: number; hits: number }[] {
  const entries: { atUs: number; hits: number }[] = [];
  const newestUs = bytes.length > 4 ? bytes.readDoubleBE(bytes.length - 12) : 0;
  const total = (bytes.readUInt32BE(bytes.length - 4) - bytes.readUInt32BE(0)) >>> 0;
  let left = total;
  for (let end = bytes.length; end > 4 && left > 0; end -= 12) {
    const atUs = bytes.readDoubleBE(end - 12);
    if (atUs <= newestUs - periodUs) break;
    const hits = Math.min(left, (bytes.readUInt32BE(end - 4) - bytes.readUInt32BE(end - 16)) >>> 0);
    entries.unshift({ atUs, hits });
    left -= hits;
  }
  return entries;
}

/**
 * Windows: number of the window, count. Levels: us per tick, units per tick, units per hit, tick, used units.
 * Shapers: us per tick, parts per tick, tick, wait in parts. Intervals: tokens per interval, its begin, used tokens.
 * Pairs: number of the window, counts of it and of the one before. Segments: number, counts back to the oldest.
 * Shapers: us per tick, parts per tick, tick, wait in parts.
 */
function stateBytes(counter: Exclude<CounterModel, { kind: "log" }>): Buffer {
  if (counter.kind === "window") {
    const { startUs, periodUs, charges } = counter.state;
    return doubles([startUs / periodUs, totalCharged(charges)]);
  }
  if (counter.kind === "interval") {
    const { refill, sinceUs, used } = counter.state;
    return doubles([refill, sinceUs, used]);
  }
  if (counter.kind === "pair") {
    const { window, current, previous } = counter.state;
    return doubles([window, current, previous]);
  }
  if (counter.kind === "segments") return doubles([counter.state.segment, ...hitsBySegment(counter.state)]);
  if (counter.kind === "shaper") {
    const { tickUs, tickParts, tick } = counter.state;
    return doubles([tickUs, tickParts, tick, wholeOf(waitParts(counter.state))]);
  }
  const { grain, tick, used } = counter.state;
  return doubles([grain.tickUs, grain.tickUnits, grain.hitUnits, tick, wholeOf(times(used, grain.hitUnits))]);
}

function wholeOf({ num, den }: Fraction): bigint {
  if (num % den !== 0n) throw new Error("a counter is not a whole number of its units");
  return num / den;
}

function doubles(numbers: readonly bigint[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 8);
  for (const [index, number] of numbers.entries()) bytes.writeDoubleBE(Number(number), index * 8);
  return bytes;
}
