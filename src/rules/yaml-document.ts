// YAML text to a tree of plain nodes with places: aliases are followed and merges (`<<`) written out. It knows nothing
// of rules. What it refuses, it refuses for the whole file, since a file half understood has no meaning.
import { type Alias, isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap } from "yaml";
import type { Place } from "./problem.ts";
import { plainScalar, type ScalarValue, taggedScalar } from "./yaml-scalar.ts";
import { firstDocument, MAX_DEPTH, type SyntaxProblem } from "./yaml-stream.ts";

/** A scalar; `text` is its spelling without quotes. */
export type ScalarNode = ScalarValue & { readonly place: Place; readonly text: string };

export interface ListNode {
  readonly kind: "list";
  readonly place: Place;
  readonly items: readonly Node[];
}

/** One key and its value. Keys may repeat: the later one counts. */
export interface Pair {
  readonly key: Node;
  readonly value: Node;
  /** The `<<` that brought it in. */
  readonly mergedAt: Place | undefined;
}

export interface MapNode {
  readonly kind: "map";
  readonly place: Place;
  readonly pairs: readonly Pair[];
}

export type Node = ScalarNode | ListNode | MapNode;

/** Longest text, in UTF-16 units. A Kubernetes ConfigMap holds a quarter of it. */
export const MAX_LENGTH = 4 * 1024 * 1024;

/** Nodes that aliases may add to a document, so that a small text cannot stand for an endless one. */
export const MAX_ALIASED = 400_000;

export type DocumentOrProblems =
  | { readonly root: Node | undefined }
  | { readonly problems: readonly DocumentProblem[] };

export interface DocumentProblem {
  readonly place: Place;
  readonly message: string;
}

/** Reads the first document of a text. An empty one has no root. */
export function readDocument(file: string, text: string): DocumentOrProblems {
  const top: Place = { file, line: 1, column: 1 };
  if (text.length > MAX_LENGTH) {
    return { problems: [{ place: top, message: "the file is larger than 4 MiB: split it" }] };
  }
  const { root, lines, problem } = firstDocument(text);
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const control = forbiddenCharacter(text, root?.range?.[2] ?? text.length);
  const early = control ?? problem;
  if (early !== undefined) return { problems: [{ place: placeAt(early.offset), message: early.message }] };
  if (root === undefined) return { root };
  const builder: Builder = { placeAt, problems: [], anchors: new Map(), open: new Set(), aliases: 0, aliased: 0 };
  findAnchors(root, new Map(), builder.anchors);
  const built = build(builder, root);
  return builder.problems.length === 0 ? { root: built } : { problems: builder.problems };
}

interface Builder {
  readonly placeAt: (offset: number) => Place;
  readonly problems: DocumentProblem[];
  /** What each alias stands for: the last node of that name before it. */
  readonly anchors: Map<Alias, ParsedNode>;
  /** The collections around the current node. */
  readonly open: Set<ParsedNode>;
  /** How many aliases the current node was reached through. */
  aliases: number;
  /** Nodes built so far that were reached through aliases. */
  aliased: number;
}

function findAnchors(node: ParsedNode | null, named: Map<string, ParsedNode>, found: Map<Alias, ParsedNode>): void {
  if (node === null) return;
  if (isAlias(node)) {
    const target = named.get(node.source);
    if (target !== undefined) found.set(node, target);
    return;
  }
  if (node.anchor !== undefined) named.set(node.anchor, node);
  if (isSeq(node)) {
    for (const item of node.items) findAnchors(item, named, found);
  } else if (isMap(node)) {
    for (const { key, value } of node.items) {
      findAnchors(key, named, found);
      findAnchors(value, named, found);
    }
  }
}

function build(builder: Builder, node: ParsedNode): Node {
  const place = placeOf(builder, node);
  const nothing: Node = { kind: "null", place, text: "" };
  if (builder.aliased > MAX_ALIASED) return nothing;
  if (builder.aliases > 0) {
    builder.aliased += 1;
    if (builder.aliased > MAX_ALIASED)
      return refuse(builder, node, `aliases multiply this file to over ${MAX_ALIASED} values: use fewer of them`);
  }
  if (isAlias(node)) {
    const target = builder.anchors.get(node);
    if (target === undefined) return refuse(builder, node, `there is no &${node.source} before this alias`);
    builder.aliases += 1;
    const built = build(builder, target);
    builder.aliases -= 1;
    return built;
  }
  if (isScalar(node)) return buildScalar(builder, node, place);
  if (builder.open.has(node)) return refuse(builder, node, `&${node.anchor} contains itself`);
  if (builder.open.size >= MAX_DEPTH) return refuse(builder, node, `this is nested more than ${MAX_DEPTH} levels deep`);
  builder.open.add(node);
  const built: Node = isSeq(node)
    ? { kind: "list", place, items: node.items.map((item) => build(builder, item)) }
    : { kind: "map", place, pairs: buildPairs(builder, node) };
  builder.open.delete(node);
  return built;
}

function buildScalar(builder: Builder, node: Scalar.Parsed, place: Place): Node {
  const text = node.source;
  if (!text.isWellFormed()) return refuse(builder, node, "half of a surrogate pair is no character: remove the escape");
  // `!` alone asks for what the parser would do anyway.
  const tag = node.tag === "!" ? undefined : node.tag;
  if (tag === undefined) {
    const plain = node.type === "PLAIN" || node.tag === "!";
    return { ...(plain ? plainScalar(text) : { kind: "text" }), place, text };
  }
  const value = taggedScalar(text, tag);
  if ("problem" in value) return refuse(builder, node, value.problem);
  return { ...value, place, text };
}

/** In the order in which go-yaml sets the keys: a merge overrides what stands before it. */
function buildPairs(builder: Builder, map: YAMLMap.Parsed): Pair[] {
  const pairs: Pair[] = [];
  for (const { key, value } of map.items) {
    if (isMergeKey(key)) {
      for (const source of mergeSources(builder, value, key)) {
        for (const pair of source.pairs) pairs.push({ ...pair, mergedAt: placeOf(builder, key) });
      }
    } else {
      const built = build(builder, key);
      const nothing: Node = { kind: "null", place: built.place, text: "" };
      pairs.push({ key: built, value: value === null ? nothing : build(builder, value), mergedAt: undefined });
    }
  }
  return pairs;
}

function isMergeKey(key: ParsedNode): boolean {
  if (!isScalar(key) || key.source !== "<<") return false;
  return key.tag === undefined || key.tag === "!" ? key.type === "PLAIN" : key.tag === "tag:yaml.org,2002:merge";
}

/** The maps to merge, the one that counts most last. */
function mergeSources(builder: Builder, value: ParsedNode | null, key: ParsedNode): MapNode[] {
  const built = build(builder, value ?? key);
  const sources = built.kind === "list" && value !== null && !isAlias(value) ? built.items.toReversed() : [built];
  const maps = sources.filter((source) => source.kind === "map");
  if (maps.length < sources.length)
    refuse(builder, value ?? key, "`<<` takes a map, an alias of a map, or a list of these");
  return maps;
}

function placeOf(builder: Builder, node: ParsedNode): Place {
  return builder.placeAt(node.range[0]);
}

function refuse(builder: Builder, node: ParsedNode, message: string): Node {
  const place = placeOf(builder, node);
  builder.problems.push({ place, message });
  return { kind: "null", place, text: "" };
}

/**
 * The characters that go-yaml refuses wherever they stand, a byte order mark that is not at the start among them, and
 * those that break lines in YAML 1.1 but not in later versions (U+0085, U+2028, U+2029).
 */
const FORBIDDEN = /(?!^)\ufeff|[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

function forbiddenCharacter(text: string, end: number): SyntaxProblem | undefined {
  const found = FORBIDDEN.exec(text.slice(0, end));
  if (found === null) return undefined;
  const code = found[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return { offset: found.index, message: `the character U+${code} may not stand in a rule file: remove it` };
}
