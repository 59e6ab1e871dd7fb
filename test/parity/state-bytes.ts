// The bytes under which Redis keeps a counter, from the oracle's view of it: big-endian doubles.

import { totalCharged } from "../oracle/fixed-window.ts";
import { type Fraction, times } from "../oracle/fraction.ts";
import { waitParts } from "../oracle/shaper.ts";
import type { CounterModel } from "../oracle/worlds.ts";

/**
 * Windows: number of the window, count. Levels: us per tick, units per tick, units per hit, tick, used units.
 * Shapers: us per tick, parts per tick, tick, wait in parts.
 */
export function stateBytes(counter: CounterModel): Buffer {
  if (counter.kind === "window") {
    const { startUs, periodUs, charges } = counter.state;
    return doubles([startUs / periodUs, totalCharged(charges)]);
  }
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
