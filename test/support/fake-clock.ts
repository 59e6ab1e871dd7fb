// A clock that stands still until a test moves it.
import type { Clock } from "../../src/core/ports.ts";

/** 2027-01-15T08:00:00Z: the start of a second, a minute and an hour. Microseconds since 1970. */
export const START_US = 1_800_000_000_000_000;

export class FakeClock implements Clock {
  #nowUs: number;

  constructor(nowUs = START_US) {
    this.#nowUs = nowUs;
  }

  nowUs(): number {
    return this.#nowUs;
  }

  /** May step back. */
  set(nowUs: number): void {
    this.#nowUs = nowUs;
  }

  /** @param us negative to step back */
  advance(us: number): void {
    this.#nowUs += us;
  }
}
