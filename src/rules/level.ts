// The rules of one level and below: which entries each can match, in which order they are tried, and how the counters
// of each are keyed.

import { type KeyPlan, keyHead, type Sha256 } from "../core/counter-key.ts";
import type { ByteString } from "../core/descriptor.ts";
import { US_PER_SECOND } from "../core/limit-spec.ts";
import {
  type KeyRules,
  type Rule,
  type RuleLevel,
  type RuleNode,
  type StarNode,
  type StarPattern,
  starPattern,
} from "../core/rule-tree.ts";
import { toBytes } from "../core/text.ts";
import { type Findings, formatPlace, type Place, problemAt, shown } from "./problem.ts";
import { compileRateLimit, type RateLimitContext } from "./rate-limit.ts";
import type { Checked } from "./schema.ts";

/** What all rules of a domain have in common, and where they and their problems are collected. */
export interface DomainContext extends RateLimitContext {
  readonly text: string;
  readonly name: ByteString;
  readonly hashTag: ByteString | undefined;
  readonly keyPrefix: string;
  readonly sha256: Sha256;
  readonly findings: Findings;
  readonly rules: PlacedRule[];
}

export interface PlacedRule {
  readonly rule: Rule;
  readonly place: Place;
}

/** The levels above. */
interface Above {
  readonly levels: readonly string[];
  /** How many entries belong to the hash tag, once an open one was met. */
  readonly tagEntries: number | undefined;
  readonly sharedValues: readonly (ByteString | undefined)[];
}

/** A descriptor and its texts as bytes. */
interface Sibling {
  readonly descriptor: Checked<"descriptor">;
  readonly key: ByteString;
  /** Empty: any value. */
  readonly value: ByteString;
  /** Present when the key has a star. */
  readonly keyPattern: StarPattern | undefined;
}

const TOP: Above = { levels: [], tagEntries: undefined, sharedValues: [] };

export function compileLevel(
  domain: DomainContext,
  descriptors: readonly Checked<"descriptor">[],
  above: Above = TOP,
): RuleLevel {
  const siblings = descriptors.map(siblingOf);
  const isOpen = openness(siblings);
  const named: { sibling: Sibling; node: RuleNode }[] = [];
  const places = new Map<string, Place>();
  for (const sibling of siblings) {
    const node = compileNode(domain, sibling, isOpen(sibling.key), above);
    if (sibling.key === "") continue;
    const { descriptor } = sibling;
    const identity = JSON.stringify([sibling.key, sibling.value]);
    const first = places.get(identity);
    if (first === undefined) {
      places.set(identity, descriptor.place);
      named.push({ sibling, node });
    } else {
      const path = shown([domain.text, ...above.levels, levelText(descriptor)].join("."));
      const message = `\`${path}\` is already defined at ${formatPlace(first)}: remove one, or change its key or value`;
      domain.findings.problems.push(problemAt(descriptor.place, descriptor.path, message));
    }
  }
  return arrange(named, isOpen);
}

function siblingOf(descriptor: Checked<"descriptor">): Sibling {
  const key = toBytes(descriptor.fields.key?.value ?? "");
  const value = toBytes(descriptor.fields.value?.value ?? "");
  return { descriptor, key, value, keyPattern: key.includes("*") ? starPattern(key) : undefined };
}

/** `key` or `key_value`, as written. */
function levelText({ fields }: Checked<"descriptor">): string {
  const value = fields.value?.value ?? "";
  return value === "" ? (fields.key?.value ?? "") : `${fields.key?.value ?? ""}_${value}`;
}

/** Tells of a key whether it is open: some rule for it names no value or has a star. See `KeyPlan.tagEntries`. */
function openness(siblings: readonly Sibling[]): (key: ByteString) => boolean {
  const open = new Set<ByteString>();
  const patterns: StarPattern[] = [];
  for (const { key, value, keyPattern } of siblings) {
    if (keyPattern !== undefined) patterns.push(keyPattern);
    else if (value === "" || value.includes("*")) open.add(key);
  }
  return (key) => open.has(key) || patterns.some((pattern) => pattern.matches(key));
}

function compileNode(domain: DomainContext, sibling: Sibling, open: boolean, above: Above): RuleNode {
  const { descriptor } = sibling;
  const { fields } = descriptor;
  const depth = above.levels.length + 1;
  const here: Above = {
    levels: [...above.levels, levelText(descriptor)],
    tagEntries: above.tagEntries ?? (open ? depth : undefined),
    sharedValues: [...above.sharedValues, sharedValue(domain, sibling)],
  };
  const rules = Object.freeze(compileRules(domain, descriptor, here));
  const children = fields.descriptors?.value ?? [];
  return Object.freeze({ rules, children: children.length === 0 ? undefined : compileLevel(domain, children, here) });
}

/** The one `rate_limit` of a descriptor or all of its `rate_limits`, each with a counter of its own. */
function compileRules(domain: DomainContext, descriptor: Checked<"descriptor">, here: Above): Rule[] {
  const { rate_limit: one, rate_limits: several } = descriptor.fields;
  const report = (place: Place, message: string): void => {
    domain.findings.problems.push(problemAt(place, descriptor.path, message));
  };
  if (one !== undefined && several !== undefined) {
    report(several.place, "`rate_limit` and `rate_limits` stand side by side: put all limits into `rate_limits`");
  }
  if (several?.value.length === 0) report(several.place, "`rate_limits` needs a limit; without any, leave it out");
  const rules = one === undefined ? [] : [compileRule(domain, descriptor, one.value, here)];
  const byHead = new Map<string, Place>();
  for (const [index, rateLimit] of (several?.value ?? []).entries()) {
    const name = rateLimit.fields.name?.value ?? "";
    const rule = compileRule(domain, descriptor, rateLimit, {
      ...here,
      levels: [...here.levels, name === "" ? `#${index + 1}` : name],
    });
    rules.push(rule);
    if (rule.unlimited) report(rateLimit.place, "a limit among others cannot be `unlimited`: remove it");
    if (rule.limit === undefined) continue;
    const first = byHead.get(rule.keyPlan.head);
    if (first === undefined) byHead.set(rule.keyPlan.head, rateLimit.place);
    else {
      const message = `the limit at ${formatPlace(first)} has the same algorithm and period, so both would share a counter`;
      report(rateLimit.place, `${message}: keep one`);
    }
  }
  return rules;
}

/** With `share_threshold`, what stands in counter keys for the value that was matched: the pattern itself. */
function sharedValue(domain: DomainContext, { descriptor, value, keyPattern }: Sibling): ByteString | undefined {
  const shares = descriptor.fields.share_threshold;
  if (shares?.value !== true) return undefined;
  // As at envoyproxy/ratelimit: a pattern that begins with the key is cut there, any other is taken whole.
  if (keyPattern !== undefined) return toBytes(levelText(descriptor));
  if (value.includes("*")) return value;
  const message = `\`share_threshold\` needs a \`*\` in the key or the value, and \`${shown(levelText(descriptor))}\` has none`;
  domain.findings.problems.push(problemAt(shares.place, descriptor.path, message));
  return undefined;
}

function compileRule(
  domain: DomainContext,
  descriptor: Checked<"descriptor">,
  rateLimit: Checked<"rate_limit">,
  here: Above,
): Rule {
  const { limit, unlimited, name, replaces } = compileRateLimit(rateLimit, domain, domain.findings);
  const { place, fields } = descriptor;
  // An unlimited rule keeps no counter; its plan only has to be well-formed.
  const { shape, periodUs } = limit ?? { shape: "fixed_window", periodUs: US_PER_SECOND };
  const shares = here.sharedValues.some((value) => value !== undefined);
  const keyPlan: KeyPlan = Object.freeze({
    head: keyHead(domain.keyPrefix, shape, periodUs, domain.name, domain.sha256),
    tagEntries: here.tagEntries ?? here.sharedValues.length,
    sharedValues: shares ? Object.freeze(here.sharedValues) : undefined,
    hashTag: domain.hashTag,
  });
  const rule: Rule = Object.freeze({
    domain: domain.name,
    path: [domain.text, ...here.levels].join("."),
    levels: Object.freeze(here.levels),
    position: `${formatPlace(place)}:${place.column}`,
    limit,
    unlimited,
    name,
    replaces,
    shadowMode: fields.shadow_mode?.value ?? false,
    quotaMode: fields.quota_mode?.value ?? false,
    metadata: fields.metadata?.value,
    keyPlan,
  });
  domain.rules.push({ rule, place });
  return rule;
}

/** Puts the rules of a level where `match` looks for them. */
function arrange(
  named: readonly { readonly sibling: Sibling; readonly node: RuleNode }[],
  isOpen: (key: ByteString) => boolean,
): RuleLevel {
  const byKey = new Map<ByteString, KeyRules>();
  const exactByKey = new Map<ByteString, Map<ByteString, RuleNode>>();
  const anyByKey = new Map<ByteString, RuleNode>();
  const starsByKey = new Map<ByteString, OrderedStar[]>();
  const starKeys: OrderedStar[] = [];
  for (const [order, { sibling, node }] of named.entries()) {
    const { key, value, keyPattern } = sibling;
    const exact = exactByKey.get(key) ?? new Map<ByteString, RuleNode>();
    exactByKey.set(key, exact);
    if (value === "") anyByKey.set(key, node);
    else exact.set(value, node);
    if (keyPattern === undefined && !value.includes("*")) continue;
    const star = { order, node: starNode(sibling, node) };
    if (keyPattern !== undefined) starKeys.push(star);
    else if (!starsByKey.has(key)) starsByKey.set(key, [star]);
    else starsByKey.get(key)?.push(star);
  }
  // A key with a star is also a key like any other: to requests that spell it so, as at envoyproxy/ratelimit.
  for (const [key, exact] of exactByKey) {
    const matching = starKeys.filter(({ node }) => node.key?.matches(key) === true);
    const stars = [...(starsByKey.get(key) ?? []), ...matching].sort((a, b) => a.order - b.order);
    byKey.set(
      key,
      Object.freeze({
        exact,
        stars: Object.freeze(stars.map(({ node }) => node)),
        anyValue: anyByKey.get(key),
        open: isOpen(key),
      }),
    );
  }
  return Object.freeze({ byKey, starKeys: Object.freeze(starKeys.map(({ node }) => node)) });
}

/** A rule with a star and its rank in the file. */
interface OrderedStar {
  readonly order: number;
  readonly node: StarNode;
}

function starNode({ value, keyPattern }: Sibling, node: RuleNode): StarNode {
  return Object.freeze({ key: keyPattern, value: value === "" ? undefined : starPattern(value), node });
}
