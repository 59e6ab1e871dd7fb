// A shell line that runs into one of the rules in force, for the first minute with weir.
import { WINDOWS } from "../core/limit-spec.ts";
import type { RuleTree } from "../core/rule-tree.ts";
import { toText } from "../core/text.ts";

/** A rule that needs more calls than this is no good example. */
const MOST_CALLS = 100;

interface Example {
  readonly calls: number;
  readonly request: string;
}

/** `undefined` when no rule on a first level refuses after a few calls. */
export function exampleCall(tree: RuleTree, httpAddress: string): string | undefined {
  const example = findExample(tree);
  if (example === undefined) return undefined;
  const address = httpAddress.replace(/^(0\.0\.0\.0|\[::\])/, "localhost");
  const curl = `curl -s -o /dev/null -w '%{http_code}\\n' -d '${example.request}' http://${address}/json`;
  return `for i in $(seq ${example.calls}); do ${curl}; done`;
}

/** The rule on a first level that refuses soonest, asked for with an entry that matches it. */
function findExample(tree: RuleTree): Example | undefined {
  let best: Example | undefined;
  for (const domain of tree.domains.values()) {
    for (const [key, { anyValue }] of domain.root.byKey) {
      const [rule] = anyValue?.rules ?? [];
      if (rule?.limit === undefined || rule.shadowMode || rule.quotaMode) continue;
      const { algorithm, requestsPerUnit, burst } = rule.limit;
      const calls = (WINDOWS.has(algorithm) ? requestsPerUnit : burst) + 1;
      if (calls > (best?.calls ?? MOST_CALLS + 1) || requestsPerUnit === 0) continue;
      const request = JSON.stringify({
        domain: toText(domain.name),
        descriptors: [{ entries: [{ key: toText(key), value: "demo" }] }],
      });
      if (!request.includes("'")) best = { calls, request };
    }
  }
  return best;
}
