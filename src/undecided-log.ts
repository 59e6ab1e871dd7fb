// Tells of calls that the store could not decide: at once when they begin, then in sum, so that an outage neither goes
// unseen nor fills the log.
import type { Logger } from "./logger.ts";

/** Least time between two lines. Milliseconds. */
const EVERY_MS = 10_000;

export class UndecidedLog {
  readonly #logger: Logger;
  #calls = 0;
  #reason = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Counts a call. */
  add(reason: string): void {
    this.#calls += 1;
    this.#reason = reason;
    if (this.#timer === undefined) this.#tell();
  }

  #tell(): void {
    this.#timer = undefined;
    if (this.#calls === 0) return;
    this.#logger.warn({ calls: this.#calls, reason: this.#reason }, "calls could not be decided");
    this.#calls = 0;
    this.#timer = setTimeout(() => this.#tell(), EVERY_MS);
    this.#timer.unref();
  }
}
