// Property tests: fast-check inside a vitest test. A failing property prints its seed and path; the counterexample is
// then kept as an example of the same test.
import fc from "fast-check";
import { it } from "vitest";

export { fc };

/** Runs a property as a test. `WEIR_TEST_RUNS` sets the number of runs of every property. */
export function test<Inputs extends [unknown, ...unknown[]]>(
  name: string,
  inputs: { [Index in keyof Inputs]: fc.Arbitrary<Inputs[Index]> },
  property: (...values: Inputs) => void | Promise<void>,
  options: { examples?: Inputs[]; runs?: number } = {},
): void {
  const runs = Number(process.env["WEIR_TEST_RUNS"] ?? options.runs ?? 200);
  it(name, () =>
    fc.assert(
      fc.asyncProperty<Inputs>(...inputs, async (...values) => property(...values)),
      {
        numRuns: runs,
        ...(options.examples === undefined ? {} : { examples: options.examples }),
      },
    ),
  );
}
