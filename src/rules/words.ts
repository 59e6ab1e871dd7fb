// The words of the grammar, wherever they stand: known ones, misspelled ones, repeated ones. As at envoyproxy/ratelimit
// a known word in the wrong place does nothing, but what stands below it must be made of known words all the same.
import { nearestWord } from "./nearest-word.ts";
import { type Findings, problemAt, shown } from "./problem.ts";
import { SHAPE_TITLES, SHAPES, type ShapeName } from "./schema.ts";
import type { MapNode, Node, Pair } from "./yaml-document.ts";
import { plainScalar } from "./yaml-scalar.ts";

/** The rule that is being read, and where what is wrong with it goes. */
export interface Context {
  readonly path: string;
  readonly findings: Findings;
}

/** Each word of the grammar and the shapes that have it. */
const PLACES: ReadonlyMap<string, readonly ShapeName[]> = placesOfWords();

function placesOfWords(): ReadonlyMap<string, readonly ShapeName[]> {
  const places = new Map<string, ShapeName[]>();
  for (const [name, shape] of Object.entries(SHAPES)) {
    for (const word of Object.keys(shape)) places.set(word, [...(places.get(word) ?? []), name as ShapeName]);
  }
  return places;
}

/** The word of a key, or `undefined` if it is none, which is reported. */
export function knownWord(key: Node, context: Context, shape?: ShapeName): string | undefined {
  if (key.kind === "text" && PLACES.has(key.text)) return key.text;
  const message =
    key.kind === "text"
      ? `unknown word \`${shown(key.text)}\`${suggestion(key.text, shape)}`
      : `${described(key)} is no word of a rule file: words are plain text`;
  context.findings.problems.push(problemAt(key.place, context.path, message));
  return undefined;
}

/** A word that may stand here, if one is near, else one that may stand elsewhere, else all that may stand here. */
function suggestion(written: string, shape: ShapeName | undefined): string {
  const words = Object.keys(shape === undefined ? {} : SHAPES[shape]);
  const here = nearestWord(written, words);
  if (here !== undefined) return `; did you mean \`${here}\`?`;
  const elsewhere = nearestWord(written, PLACES.keys());
  if (elsewhere !== undefined) return `; did you mean \`${elsewhere}\`, which belongs in ${placesOf(elsewhere)}?`;
  return shape === undefined ? "" : `; the words of ${SHAPE_TITLES[shape]} are ${words.join(", ")}`;
}

function placesOf(word: string): string {
  return (PLACES.get(word) ?? []).map((name) => SHAPE_TITLES[name]).join(" or ");
}

/** A word of the grammar where it does nothing. */
export function ignoreWord(word: string, pair: Pair, shape: ShapeName, context: Context): void {
  const message = `\`${word}\` does nothing in ${SHAPE_TITLES[shape]}: it belongs in ${placesOf(word)}`;
  context.findings.warnings.push(problemAt(pair.key.place, context.path, message));
  if (word !== "metadata") checkLoosely(pair.value, context);
}

/** The checks that hold everywhere but in `metadata`: known words, lists of maps, no decimal numbers. */
function checkLoosely(node: Node, context: Context): void {
  if (node.kind === "map") {
    for (const { key, value } of node.pairs) {
      const word = knownWord(key, context);
      if (word !== undefined && word !== "metadata") checkLoosely(value, context);
    }
  } else if (node.kind === "list") {
    for (const item of node.items) if (isMap(item, context)) checkLoosely(item, context);
  } else {
    isPlainText(node, context);
  }
}

/** Whether an item of a list is a map, as all must be. If not, that is reported. */
export function isMap(item: Node, context: Context): item is MapNode {
  if (item.kind === "map") return true;
  context.findings.problems.push(problemAt(item.place, context.path, `a list takes maps here, not ${described(item)}`));
  return false;
}

/** Whether a scalar can be text. Numbers whose spelling a YAML tool may change cannot, and are reported. */
export function isPlainText(node: Node, context: Context): boolean {
  const decimal = node.kind === "float";
  const large = node.kind === "integer" && BigInt.asIntN(64, node.value) !== node.value;
  if (!decimal && !large) return true;
  const what = decimal ? "a decimal number" : "a number beyond 64 bits";
  const message = `${described(node)} is ${what} to YAML: put it in quotes if text is meant`;
  context.findings.problems.push(problemAt(node.place, context.path, message));
  return false;
}

/** The last of equal keys counts; nobody writes two on purpose. */
export function warnOfRepeat(word: string, earlier: Pair | undefined, later: Pair, context: Context): void {
  if (earlier === undefined || earlier.mergedAt !== undefined) return;
  const { mergedAt } = later;
  const message =
    mergedAt === undefined
      ? `\`${word}\` repeats line ${earlier.key.place.line}; the last one counts`
      : `\`<<\` overrides \`${word}\` of line ${earlier.key.place.line}: put \`<<\` first if that is not meant`;
  context.findings.warnings.push(problemAt(mergedAt ?? later.key.place, context.path, message));
}

/** How messages name a node. */
export function described(node: Node): string {
  switch (node.kind) {
    case "map":
      return "a map";
    case "list":
      return "a list";
    case "null":
      return "nothing";
    case "text":
      // Without the quotes it would be something else, which is what the message is about.
      return plainScalar(node.text).kind === "text" ? `\`${shown(node.text)}\`` : `\`"${shown(node.text)}"\``;
    default:
      return `\`${shown(node.text)}\``;
  }
}
