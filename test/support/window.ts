// Fixed windows as a client sees them, for exact expectations against the real clock.
import { eventually } from "./eventually.ts";

/**
 * Whole seconds that may be left of the window, for an answer made between two moments (whole seconds since 1970): one
 * number, or two when a second ended meanwhile.
 */
export function secondsLeft(periodSeconds: number, fromSecond: number, toSecond: number): number[] {
  const left: number[] = [];
  for (let second = fromSecond; second <= toSecond; second++) left.push(periodSeconds - (second % periodSeconds));
  return left;
}

/** Waits for the next window if less than `roomSeconds` are left of this one, so that a test stays within one. */
export async function clearOfWindowEnd(periodSeconds: number, roomSeconds = 20): Promise<void> {
  const hasRoom = (): true | undefined =>
    periodSeconds - ((Date.now() / 1000) % periodSeconds) > roomSeconds ? true : undefined;
  const withinMs = (roomSeconds + 1) * 1000;
  await eventually(`${roomSeconds} s left of a window of ${periodSeconds} s`, hasRoom, { withinMs, everyMs: 100 });
}
