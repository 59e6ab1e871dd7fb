import { defineConfig } from "vitest/config";

/** Folders whose tests start real servers; all others are pure and fast. */
const system = ["cases", "contract", "docs", "e2e", "lua", "parity", "process", "wire"].map(
  (room) => `test/${room}/**/*.test.ts`,
);

export default defineConfig({
  test: {
    reporters: ["dot", "./test/support/summary-reporter.ts"],
    projects: [
      { extends: true, test: { name: "unit", include: ["test/**/*.test.ts"], exclude: system } },
      {
        extends: true,
        test: {
          name: "system",
          include: system,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: true,
          maxWorkers: 2,
        },
      },
    ],
  },
});
