// Waiting for what another process does in its own time. Tests poll with a bound and never just sleep.
import { setTimeout as pause } from "node:timers/promises";

/**
 * Asks `probe` again and again until it answers something other than `undefined`, and returns that.
 * Throws after `withinMs` (10 s), with the last error of the probe as the cause if it threw.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | Promise<T | undefined>,
  { withinMs = 10_000, everyMs = 10 } = {},
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    let cause: unknown;
    try {
      const found = await probe();
      if (found !== undefined) return found;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`, { cause });
    await pause(everyMs);
  }
}
