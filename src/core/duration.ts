// Durations as rules and settings write them: `500ms`, `30s`, `5m`, `2h`, `1d`, or several together (`1h30m`), as Go
// writes durations, and days besides.

const UNIT_US: Readonly<Record<string, bigint>> = {
  us: 1n,
  µs: 1n,
  μs: 1n,
  ms: 1_000n,
  s: 1_000_000n,
  m: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
};

/** For JSON Schema, which has no flags; what it accepts is parsed below, or refused for its value. */
export const DURATION_PATTERN = "^([0-9]+(\\.[0-9]+)?(us|µs|μs|ms|s|m|h|d))+$";

const DURATION = new RegExp(DURATION_PATTERN);
const PARTS = /(\d+)(?:\.(\d+))?([a-zµμ]+)/g;
const MAX_LENGTH = 40;

/** Whole microseconds, 0 for `0`, or what is wrong with the text. Inexact above 2^53, which is 285 years. */
export function parseDuration(text: string): number | { readonly problem: string } {
  if (text === "0") return 0;
  if (text.length > MAX_LENGTH || !DURATION.test(text)) {
    return { problem: "write a number and a unit of us, ms, s, m, h or d, such as 500ms, 30s or 1h30m" };
  }
  let us = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of text.matchAll(PARTS)) {
    const unitUs = UNIT_US[unit] ?? 0n;
    const scaled = BigInt(whole + fraction) * unitUs;
    const scale = 10n ** BigInt(fraction.length);
    if (scaled % scale !== 0n) return { problem: "it must be a whole number of microseconds" };
    us += scaled / scale;
  }
  return Number(us);
}
