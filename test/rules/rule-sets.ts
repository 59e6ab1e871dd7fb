// Random small rule sets, as text and as the lists that a naive matcher goes through: no maps, nothing prepared.
import type { Entry } from "../../src/core/descriptor.ts";
import { fc } from "../support/property.ts";

export interface NaiveRule {
  readonly key: string;
  /** Empty: any value. */
  readonly value: string;
  readonly shares: boolean;
  /** `undefined`: no rate_limit. */
  readonly limit: NaiveLimit | undefined;
  readonly rules: readonly NaiveRule[];
}

export interface NaiveLimit {
  readonly algorithm: "fixed_window" | "gcra";
  readonly periodSeconds: number;
}

export interface NaiveDomain {
  readonly domain: string;
  readonly hashTag: string | undefined;
  readonly rules: readonly NaiveRule[];
}

const texts = ["a", "ab", "b", "", "*", "a*", "*b", "a*b", "|", "a|b=", "}", "x".repeat(129)];
const keys = fc.constantFrom(...texts.filter((text) => text !== ""));
const values = fc.constantFrom(...texts);

const limits = fc.record({
  algorithm: fc.constantFrom<NaiveLimit["algorithm"]>("fixed_window", "gcra"),
  periodSeconds: fc.constantFrom(1, 60),
});

const LEVELS = 3;

function ruleLists(depth: number): fc.Arbitrary<readonly NaiveRule[]> {
  const rules = fc
    .record({
      key: keys,
      value: values,
      shares: fc.boolean(),
      limit: fc.option(limits, { nil: undefined, freq: 6 }),
      rules: depth === 1 ? fc.constant([]) : ruleLists(depth - 1),
    })
    .map((rule) => ({ ...rule, shares: rule.shares && `${rule.key}${rule.value}`.includes("*") }));
  return fc.uniqueArray(rules, {
    maxLength: depth === LEVELS ? 5 : 3,
    selector: ({ key, value }) => JSON.stringify([key, value]),
  });
}

export const domains: fc.Arbitrary<NaiveDomain> = fc.record({
  domain: fc.constantFrom("d", "d|a=a"),
  hashTag: fc.option(fc.constantFrom("a", "ab"), { nil: undefined, freq: 1 }),
  rules: ruleLists(LEVELS),
});

/** How to make a request that has a chance: which rule to aim at on each level, and what to put for its stars. */
export type Aim = readonly { readonly rule: number; readonly star: string }[];

export const aims: fc.Arbitrary<readonly Aim[]> = fc.array(
  fc.array(fc.record({ rule: fc.nat(4), star: fc.constantFrom("a", "b", "", "*", "|") }), { maxLength: LEVELS + 1 }),
  { minLength: 1, maxLength: 12 },
);

/** Entries that the rules aimed at can match, though others may come first; one more where the levels end. */
export function requestsFor(domain: NaiveDomain, list: readonly Aim[]): readonly (readonly Entry[])[] {
  return list.map((aim) => {
    const entries: Entry[] = [];
    let level = domain.rules;
    for (const { rule, star } of aim) {
      const target = level[rule % Math.max(level.length, 1)];
      const fill = (text: string) => text.replaceAll("*", star);
      if (target === undefined) return [...entries, { key: "a", value: star }];
      entries.push({ key: fill(target.key) || "a", value: target.value === "" ? star : fill(target.value) });
      level = target.rules;
    }
    return entries;
  });
}

/** JSON is YAML. The name of each limit says where it stands. */
export function textOf({ domain, hashTag, rules }: NaiveDomain): string {
  const descriptors = (list: readonly NaiveRule[], place: string): unknown =>
    list.map((rule, index) => ({
      key: rule.key,
      value: rule.value,
      share_threshold: rule.shares,
      rate_limit:
        rule.limit === undefined
          ? null
          : {
              name: `${place}${index}`,
              requests_per_unit: 1,
              algorithm: rule.limit.algorithm,
              period: `${rule.limit.periodSeconds}s`,
            },
      descriptors: descriptors(rule.rules, `${place}${index}.`),
    }));
  return JSON.stringify({ domain, hash_tag: hashTag ?? null, descriptors: descriptors(rules, "") });
}

export interface NaiveMatch {
  readonly name: string;
  readonly limit: NaiveLimit;
  /** The request's entries after `share_threshold`. */
  readonly entries: readonly Entry[];
}

/** The peer's order at each level: the exact rule, the first with a star that matches, the one without a value. */
export function naiveMatch(domain: NaiveDomain, entries: readonly Entry[]): NaiveMatch | undefined {
  let level = domain.rules;
  let found: NaiveRule | undefined;
  let name = "";
  const shared: Entry[] = [];
  for (const entry of entries) {
    found =
      level.find((rule) => rule.value !== "" && rule.key === entry.key && rule.value === entry.value) ??
      level.find(
        (rule) =>
          `${rule.key}${rule.value}`.includes("*") &&
          glob(rule.key, entry.key) &&
          (rule.value === "" || glob(rule.value, entry.value)),
      ) ??
      level.find((rule) => rule.value === "" && rule.key === entry.key);
    if (found === undefined) return undefined;
    name += `${name === "" ? "" : "."}${level.indexOf(found)}`;
    shared.push({ key: entry.key, value: found.shares ? patternOf(found) : entry.value });
    level = found.rules;
  }
  return found?.limit === undefined ? undefined : { name, limit: found.limit, entries: shared };
}

function patternOf({ key, value }: NaiveRule): string {
  if (!key.includes("*")) return value;
  return value === "" ? key : `${key}_${value}`;
}

/** By trying every way to split the text. */
function glob(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (!pattern.startsWith("*")) return text.startsWith(pattern.charAt(0)) && glob(pattern.slice(1), text.slice(1));
  for (let skip = 0; skip <= text.length; skip++) if (glob(pattern.slice(1), text.slice(skip))) return true;
  return false;
}
