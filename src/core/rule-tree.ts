// The compiled rules of all domains, and how a descriptor finds its rule. Trees are frozen: a reload makes a new one.
import type { KeyPlan } from "./counter-key.ts";
import type { ByteString, Entry } from "./descriptor.ts";
import type { Limit } from "./limit.ts";

/** JSON as it may stand in a rule's `metadata`. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** One limit of a descriptor, or that it has none (`unlimited`). */
export interface Rule {
  readonly domain: ByteString;
  /** The domain and its levels: `edge.tenant_acme.path`. */
  readonly path: string;
  /**
   * The levels alone, outermost first: `["tenant_acme", "path"]`. One of several limits has its name behind them, or
   * `#` and its number if it has none.
   */
  readonly levels: readonly string[];
  /** Where the rule stands: `rules.yaml:12:5`. */
  readonly position: string;
  /** `undefined` exactly when `unlimited`. */
  readonly limit: Limit | undefined;
  readonly unlimited: boolean;
  /** Target for the `replaces` of other rules and shown in answers; may be empty. */
  readonly name: string;
  /** Names of limits that this rule drops from a request. */
  readonly replaces: readonly string[];
  /** Counts, but never refuses. */
  readonly shadowMode: boolean;
  /** Refuses only together with all other quota rules of the request. */
  readonly quotaMode: boolean;
  readonly metadata: JsonObject | undefined;
  /** How the counter's key is made from the request's entries. */
  readonly keyPlan: KeyPlan;
}

/** A text with stars, each of which stands for any bytes, none included. */
export interface StarPattern {
  readonly text: ByteString;
  readonly matches: (value: ByteString) => boolean;
}

export interface RuleNode {
  /** What limits requests that end here, in file order: none, one `rate_limit`, or all of `rate_limits`. */
  readonly rules: readonly Rule[];
  readonly children: RuleLevel | undefined;
}

/** A rule with a star in its key, its value or both. */
export interface StarNode {
  /** `undefined` when the key has no star; then it was compared already. */
  readonly key: StarPattern | undefined;
  /** `undefined` when the rule names no value. */
  readonly value: StarPattern | undefined;
  readonly node: RuleNode;
}

/** All rules of one level that can match entries with one key. */
export interface KeyRules {
  readonly exact: ReadonlyMap<ByteString, RuleNode>;
  /** In file order, rules with a star in the key included if they match this key. */
  readonly stars: readonly StarNode[];
  /** The rule that names no value. */
  readonly anyValue: RuleNode | undefined;
  /** Some rule here names no value or has a star: see `KeyPlan.tagEntries`. */
  readonly open: boolean;
}

export interface RuleLevel {
  readonly byKey: ReadonlyMap<ByteString, KeyRules>;
  /** Rules with a star in the key, in file order, for keys that are not in `byKey`. */
  readonly starKeys: readonly StarNode[];
}

export interface DomainRules {
  readonly name: ByteString;
  readonly root: RuleLevel;
  /** Key of the entry that becomes the hash tag, for descriptors that have it. */
  readonly hashTag: ByteString | undefined;
  /** A request charges nothing unless every limit has room. */
  readonly atomic: boolean;
}

export interface RuleTree {
  readonly domains: ReadonlyMap<ByteString, DomainRules>;
  /** Every rule, in the order of files and lines. */
  readonly rules: readonly Rule[];
}

/**
 * Compiles a text that may have stars. All text between stars must occur in order, head and tail at the ends, none
 * overlapping.
 */
export function starPattern(text: ByteString): StarPattern {
  const pieces = text.split("*");
  // Head and tail would be one and the same text, and that twice.
  if (pieces.length === 1) return Object.freeze({ text, matches: (value: ByteString) => value === text });
  const head = pieces[0] ?? "";
  const tail = pieces[pieces.length - 1] ?? "";
  const middle = pieces.slice(1, -1).filter((piece) => piece !== "");
  const matches = (value: ByteString): boolean => {
    if (value.length < head.length + tail.length || !value.startsWith(head) || !value.endsWith(tail)) return false;
    const end = value.length - tail.length;
    let at = head.length;
    for (const piece of middle) {
      const found = value.indexOf(piece, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  };
  return Object.freeze({ text, matches });
}

const NO_RULES: readonly Rule[] = [];

/** Finds the rules for a descriptor: those of the node where its last entry ends. */
export function match(domain: DomainRules, entries: readonly Entry[]): readonly Rule[] {
  let level: RuleLevel | undefined = domain.root;
  let node: RuleNode | undefined;
  for (const entry of entries) {
    if (level === undefined) return NO_RULES;
    node = findChild(level, entry);
    if (node === undefined) return NO_RULES;
    level = node.children;
  }
  return node?.rules ?? NO_RULES;
}

/** The peer's order: the exact value, then stars in file order, then the rule that names no value. Never goes back. */
function findChild(level: RuleLevel, entry: Entry): RuleNode | undefined {
  const rules = level.byKey.get(entry.key);
  if (rules === undefined) return findStar(level.starKeys, entry);
  return rules.exact.get(entry.value) ?? findStar(rules.stars, entry) ?? rules.anyValue;
}

function findStar(stars: readonly StarNode[], entry: Entry): RuleNode | undefined {
  for (const star of stars) {
    if (star.key !== undefined && !star.key.matches(entry.key)) continue;
    if (star.value === undefined || star.value.matches(entry.value)) return star.node;
  }
  return undefined;
}

/**
 * How many entries of a descriptor with an override belong to its hash tag: up to and including the first open one,
 * as for the rule that would have matched. Where nothing matches, the next entry counts as open.
 */
export function overrideTagEntries(domain: DomainRules, entries: readonly Entry[]): number {
  let level: RuleLevel | undefined = domain.root;
  for (const [index, entry] of entries.entries()) {
    const node: RuleNode | undefined = level === undefined ? undefined : findChild(level, entry);
    if (level === undefined || node === undefined || isOpen(level, entry.key)) return index + 1;
    level = node.children;
  }
  return entries.length;
}

function isOpen(level: RuleLevel, key: ByteString): boolean {
  return level.byKey.get(key)?.open ?? true;
}
