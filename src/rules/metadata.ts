// The `metadata` of a rule: any map, turned into JSON the way envoyproxy/ratelimit does it. YAML keys that are no text
// get one (`n:` is the boolean `false` in YAML 1.1, so its key is "false"), and numbers become doubles.
import type { Json, JsonObject } from "../core/rule-tree.ts";
import { type Findings, problemAt, shown } from "./problem.ts";
import type { MapNode, Node } from "./yaml-document.ts";

/** Frozen. What JSON cannot hold is reported and left out. */
export function metadataOf(node: MapNode, path: string, findings: Findings): JsonObject {
  const entries = new Map<string, Json>();
  for (const { key, value, mergedAt } of node.pairs) {
    const name = keyText(key);
    if (name === undefined) {
      findings.problems.push(problemAt(key.place, path, "a key of metadata must not be a map or a list"));
      continue;
    }
    if (entries.has(name) && mergedAt === undefined) {
      const message = `\`${shown(name)}\` stands here twice; the last one counts`;
      findings.warnings.push(problemAt(key.place, path, message));
    }
    entries.set(name, jsonOf(value, path, findings));
  }
  return Object.freeze(Object.fromEntries(entries));
}

function keyText(key: Node): string | undefined {
  if (key.kind === "map" || key.kind === "list") return undefined;
  if (key.kind === "text") return key.text;
  return key.kind === "null" ? "<nil>" : String(key.value);
}

function jsonOf(node: Node, path: string, findings: Findings): Json {
  switch (node.kind) {
    case "map":
      return metadataOf(node, path, findings);
    case "list":
      return Object.freeze(node.items.map((item) => jsonOf(item, path, findings)));
    case "text":
      return node.text;
    case "null":
      return null;
    case "boolean":
      return node.value;
    case "integer":
      return Number(node.value);
    case "float":
      if (Number.isFinite(node.value)) return node.value;
      findings.problems.push(problemAt(node.place, path, `JSON has no number ${node.text}: put it in quotes`));
      return null;
  }
}
