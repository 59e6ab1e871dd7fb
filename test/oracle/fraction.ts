// Exact rational numbers, just enough for the oracle. Nothing is ever rounded here.

export interface Fraction {
  readonly num: bigint;
  /** Greater than 0. */
  readonly den: bigint;
}

export const ZERO: Fraction = { num: 0n, den: 1n };

export function fraction(num: bigint, den = 1n): Fraction {
  return { num, den };
}

export function plus(a: Fraction, b: Fraction): Fraction {
  return { num: a.num * b.den + b.num * a.den, den: a.den * b.den };
}

export function minus(a: Fraction, b: Fraction): Fraction {
  return plus(a, { num: -b.num, den: b.den });
}

export function times(a: Fraction, factor: bigint): Fraction {
  return { num: a.num * factor, den: a.den };
}

export function isBelow(a: Fraction, b: Fraction): boolean {
  return a.num * b.den < b.num * a.den;
}

export function isAtMost(a: Fraction, b: Fraction): boolean {
  return !isBelow(b, a);
}

export function smaller(a: Fraction, b: Fraction): Fraction {
  return isBelow(b, a) ? b : a;
}

export function larger(a: Fraction, b: Fraction): Fraction {
  return isBelow(a, b) ? b : a;
}

/** The largest integer that is not above it. */
export function floorOf({ num, den }: Fraction): bigint {
  const cut = num / den;
  return cut * den > num ? cut - 1n : cut;
}

/** The smallest integer that is not below it. */
export function ceilOf({ num, den }: Fraction): bigint {
  return -floorOf({ num: -num, den });
}

/** The same number in lowest terms. */
export function reduced({ num, den }: Fraction): Fraction {
  const divisor = greatestDivisor(num < 0n ? -num : num, den);
  return { num: num / divisor, den: den / divisor };
}

export function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b);
}
