// Durations as rules and settings write them: `500ms`, `30s`, `2h`, `1h30m` (the form of Go's time package, and days).

const UNIT_US: Readonly<Record<string, number>> = {
  us: 1,
  µs: 1,
  ms: 1_000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
};

const PART = /(\d+(?:\.\d+)?)(us|µs|ms|s|m|h|d)/gy;

/** Whole microseconds, 0 for `0`; `undefined` when the text is no duration or not a whole number of microseconds. */
export function parseDurationUs(text: string): number | undefined {
  if (text === "0") return 0;
  let totalUs = 0;
  PART.lastIndex = 0;
  let end = 0;
  for (let part = PART.exec(text); part !== null; part = PART.exec(text)) {
    totalUs += Number(part[1]) * (UNIT_US[part[2] ?? ""] ?? Number.NaN);
    end = PART.lastIndex;
  }
  if (end === 0 || end !== text.length) return undefined;
  // Decimal fractions are not exact in binary; what is within a thousandth of a whole number was meant to be one.
  const whole = Math.round(totalUs);
  return Number.isSafeInteger(whole) && Math.abs(totalUs - whole) < 1e-3 ? whole : undefined;
}
