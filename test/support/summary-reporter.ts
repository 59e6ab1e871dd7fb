// Ends the run with one plain line that people and scripts can read.
import type { Reporter, TestModule } from "vitest/node";

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed" || state === "failed") counts[state] += 1;
        else counts.skipped += 1;
      }
      // A file that could not be loaded has no tests to count.
      if (module.state() === "failed" && module.errors().length > 0) counts.failed += 1;
    }
    // After the other reporters, which write their summaries at the same event.
    process.once("exit", () => {
      process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
    });
  }
}
