import { defineConfig } from "vitest/config";

const testsIn = (...rooms: readonly string[]): string[] => rooms.map((room) => `test/${room}/**/*.test.ts`);

/** Tests that start real servers; all others are pure and fast. */
const system = testsIn("cases", "contract", "lua", "parity", "process", "topology", "wire");
/** Whole stacks with time limits of their own, so one file at a time. */
const stacks = testsIn("docs", "e2e");
const slow = { testTimeout: 60_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    reporters: ["dot", "./test/support/summary-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...system, ...stacks],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "system", include: system, ...slow, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: "stacks", include: stacks, ...slow, fileParallelism: false, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
