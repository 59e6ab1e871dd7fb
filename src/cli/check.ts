// weir check: reads rule files as the server would in this environment and prints every problem.
import { readRuleFiles } from "../reload.ts";
import { compileRules } from "../rules/compile.ts";
import { formatProblem } from "../rules/problem.ts";
import { readSettings } from "../settings.ts";
import { sha256 } from "../sha256.ts";

/** Returns the exit code: 0 when the rules would load, 1 when not. */
export function check(directory: string, mergeDomains: boolean): 0 | 1 {
  let files: ReturnType<typeof readRuleFiles>;
  try {
    files = readRuleFiles(directory);
  } catch (error) {
    process.stderr.write(`${directory}: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  if (files.length === 0) {
    process.stderr.write(`${directory} has no rule files: they end in .yaml, .yml or .json\n`);
    return 1;
  }
  const read = readSettings(process.env);
  if ("problems" in read) {
    for (const problem of read.problems) process.stderr.write(`${problem}\n`);
    return 1;
  }
  const outcome = compileRules(files, {
    keyPrefix: "",
    mergeDomains,
    slidingLogMax: read.settings.slidingLogMax,
    sha256,
  });
  for (const warning of outcome.warnings) process.stderr.write(`warning: ${formatProblem(warning)}\n`);
  if ("problems" in outcome) {
    for (const problem of outcome.problems) process.stderr.write(`${formatProblem(problem)}\n`);
    return 1;
  }
  process.stdout.write(
    `${files.length} files, ${outcome.tree.domains.size} domains, ${outcome.tree.rules.length} rules: OK\n`,
  );
  return 0;
}
