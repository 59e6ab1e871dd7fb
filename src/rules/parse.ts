// Rule file to checked document: every word is known and in its place, every value has its type. What the words mean
// together is not looked at here. One wrong value never hides another: each is reported and the rest is read on.
import { metadataOf } from "./metadata.ts";
import { type Findings, problemAt, shown } from "./problem.ts";
import { type Checked, type Field, type Given, SHAPE_TITLES, SHAPES, type ShapeName } from "./schema.ts";
import { type Context, described, ignoreWord, isMap, isPlainText, knownWord, warnOfRepeat } from "./words.ts";
import { type MapNode, type Node, type Pair, readDocument } from "./yaml-document.ts";

/** A file of rules. */
export interface RuleFile {
  /** Path relative to the directory of the rules: `edge.yaml`, `sub/deep.yaml`. */
  readonly name: string;
  readonly text: string;
}

type AnyFields = Record<string, Given<unknown>>;
type AnyChecked = Checked<ShapeName>;

/** `undefined` when nothing can be said of the file but what was reported. */
export function parseFile(file: RuleFile, findings: Findings): Checked<"file"> | undefined {
  const document = readDocument(file.name, file.text);
  if ("problems" in document) {
    for (const { place, message } of document.problems) findings.problems.push(problemAt(place, "", message));
    return undefined;
  }
  const { root } = document;
  if (root?.kind === "map") return checkedMap("file", root, { path: "", findings });
  const place = root?.place ?? { file: file.name, line: 1, column: 1 };
  const empty = root === undefined || root.kind === "null";
  const message = empty
    ? "the file is empty: it needs a `domain`"
    : `a rule file is a map with a \`domain\`, not ${described(root)}`;
  findings.problems.push(problemAt(place, "", message));
  return undefined;
}

/** @param before an earlier value of the same key, which a later one adds to (as go-yaml fills a struct twice) */
function checkedMap<Name extends ShapeName>(
  name: Name,
  node: MapNode,
  context: Context,
  before?: AnyChecked,
): Checked<Name> {
  const shape: Readonly<Record<string, Field>> = SHAPES[name];
  const fields: AnyFields = { ...before?.fields };
  // Only what is below the top of a file has a path.
  const inner = name === "file" ? { ...context, path: shown(lastText(node, "domain")) } : context;
  const refused = new Set<string>();
  const seen = new Map<string, Pair>();
  for (const pair of node.pairs) {
    const word = knownWord(pair.key, context, name);
    if (word === undefined) continue;
    warnOfRepeat(word, seen.get(word), pair, context);
    seen.set(word, pair);
    const field = shape[word];
    if (field === undefined) {
      ignoreWord(word, pair, name, context);
      continue;
    }
    const earlier = fields[word];
    delete fields[word];
    if (pair.value.kind === "null") continue;
    const value = checkedValue(word, field, pair.value, inner, earlier?.value);
    if (value === undefined) refused.add(word);
    else fields[word] = { place: pair.value.place, value };
  }
  for (const [word, field] of Object.entries(shape)) {
    if (field.kind === "text" && field.required === true && !refused.has(word)) {
      checkPresence(name, word, fields[word], node, context);
    }
  }
  const complete = refused.size === 0 && before?.complete !== false;
  // The loop filled only fields of this shape, each with a value of its type.
  return { place: node.place, path: context.path, complete, fields } as Checked<Name>;
}

function checkPresence(
  name: ShapeName,
  word: string,
  given: Given<unknown> | undefined,
  node: MapNode,
  context: Context,
): void {
  if (given !== undefined && given.value !== "") return;
  const message = `${SHAPE_TITLES[name]} needs a \`${word}\` that is not empty`;
  context.findings.problems.push(problemAt(given?.place ?? node.place, context.path, message));
}

/** `undefined` when it was refused, and that was reported. */
function checkedValue(word: string, field: Field, node: Node, context: Context, earlier: unknown): unknown {
  switch (field.kind) {
    case "map":
      if (node.kind !== "map") return refuse(word, "a map", node, context);
      return checkedMap(field.shape, node, context, earlier as AnyChecked | undefined);
    case "list":
      if (node.kind !== "list") return refuse(word, "a list", node, context);
      return checkedList(field.shape, node.items, context);
    case "free":
      if (node.kind !== "map") return refuse(word, "a map", node, context);
      return metadataOf(node, context.path, context.findings);
    case "flag":
      return node.kind === "boolean" ? node.value : refuse(word, "true or false", node, context);
    case "integer": {
      const fits = node.kind === "integer" && node.value >= field.min && node.value <= field.max;
      return fits
        ? Number(node.value)
        : refuse(word, `a whole number from ${field.min} to ${field.max}`, node, context);
    }
    case "choice":
      if (node.kind === "text" && field.choices.includes(node.text)) return node.text;
      return refuse(word, `one of ${field.choices.join(", ")}`, node, context);
    case "text":
      if (node.kind === "map" || node.kind === "list") return refuse(word, "a text", node, context);
      return isPlainText(node, context) ? node.text : undefined;
  }
}

function refuse(word: string, taken: string, node: Node, context: Context): undefined {
  const message = `\`${word}\` takes ${taken}, not ${described(node)}`;
  context.findings.problems.push(problemAt(node.place, context.path, message));
}

function checkedList(shape: ShapeName, items: readonly Node[], context: Context): readonly AnyChecked[] {
  const checked: AnyChecked[] = [];
  for (const [index, item] of items.entries()) {
    if (!isMap(item, context)) continue;
    checked.push(checkedMap(shape, item, shape === "descriptor" ? within(context, item, index) : context));
  }
  return checked;
}

/** A descriptor is called by its key and value, or by its number if it has no key. */
function within(context: Context, node: MapNode, index: number): Context {
  const key = shown(lastText(node, "key")) || `#${index + 1}`;
  const value = shown(lastText(node, "value"));
  const path = [context.path, value === "" ? key : `${key}=${value}`].filter((part) => part !== "").join(" > ");
  return { ...context, path };
}

/** What a text field will say; empty when it is missing or no text. */
function lastText(node: MapNode, word: string): string {
  const value = node.pairs.findLast(({ key }) => key.kind === "text" && key.text === word)?.value;
  return value === undefined || value.kind === "map" || value.kind === "list" || value.kind === "null"
    ? ""
    : value.text;
}
