// The bytes under which Redis keeps a counter, from the oracle's view of it: big-endian doubles.
import { totalCharged } from "../oracle/fixed-window.ts";
import type { CounterModel } from "../oracle/worlds.ts";

/** Windows: number of the window, count. Levels: us per tick, units per tick, units per hit, tick, used units. */
export function stateBytes(counter: CounterModel): Buffer {
  if (counter.kind === "window") {
    const { startUs, periodUs, charges } = counter.state;
    return doubles([startUs / periodUs, totalCharged(charges)]);
  }
  const { grain, tick, used } = counter.state;
  const scaled = used.num * grain.hitUnits;
  if (scaled % used.den !== 0n) throw new Error("a level is not a whole number of units");
  return doubles([grain.tickUs, grain.tickUnits, grain.hitUnits, tick, scaled / used.den]);
}

function doubles(numbers: readonly bigint[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 8);
  for (const [index, number] of numbers.entries()) bytes.writeDoubleBE(Number(number), index * 8);
  return bytes;
}
