// Waiting for something that another part of a real system is about to do, without sleeping for a fixed time.

const WITHIN_MS = 10_000;

/** Resolves once the condition holds; rejects with its text when that takes too long. */
export async function eventually(condition: () => boolean): Promise<void> {
  const until = performance.now() + WITHIN_MS;
  while (!condition()) {
    if (performance.now() > until) throw new Error(`still not true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
