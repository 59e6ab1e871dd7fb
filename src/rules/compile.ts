// Checked documents to a frozen tree of rules. Everything that depends on a rule alone is computed here, once, so that
// a request finds it ready. What levels are made of is in level.ts.

import { DEFAULT_LOG_LIMIT } from "../core/algorithms/sliding-log.ts";
import type { Sha256 } from "../core/counter-key.ts";
import type { ByteString } from "../core/descriptor.ts";
import type { DomainRules, Rule, RuleTree } from "../core/rule-tree.ts";
import { toBytes } from "../core/text.ts";
import { compileLevel, type PlacedRule } from "./level.ts";
import { parseFile, type RuleFile } from "./parse.ts";
import {
  compareText,
  type Findings,
  formatPlace,
  type Place,
  type Problem,
  problemAt,
  shown,
  sortProblems,
} from "./problem.ts";
import type { Checked, Given } from "./schema.ts";

export interface CompileOptions {
  /** Put before every counter key. */
  readonly keyPrefix: string;
  /** Several files may name one domain; their top-level rules are added together. */
  readonly mergeDomains: boolean;
  readonly sha256: Sha256;
  /** Largest limit of a sliding_window_log; 1,000 when absent. */
  readonly slidingLogMax?: number;
}

export type CompileOutcome =
  | { readonly tree: RuleTree; readonly warnings: readonly Problem[] }
  | { readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] };

/** What all files say of one domain. */
interface DomainSource {
  readonly name: string;
  readonly place: Place;
  hashTag: Given<string> | undefined;
  atomic: Given<boolean> | undefined;
  readonly descriptors: Checked<"descriptor">[];
}

/** Compiles all files together, in the order of their names. Any problem in any file leaves no tree. */
export function compileRules(files: readonly RuleFile[], options: CompileOptions): CompileOutcome {
  const findings: Findings = { problems: [], warnings: [] };
  const sources: DomainSource[] = [];
  const byName = new Map<string, DomainSource>();
  for (const file of [...files].sort((a, b) => compareText(a.name, b.name))) {
    const parsed = parseFile(file, findings);
    if (parsed === undefined) continue;
    const source = domainSource(parsed);
    const first = byName.get(source.name);
    if (first !== undefined && options.mergeDomains) {
      merge(first, source, findings);
      continue;
    }
    // Rules of a domain that stands twice are looked at all the same, for what else may be wrong.
    sources.push(source);
    if (first !== undefined) findings.problems.push(duplicateDomain(first, source));
    else if (source.name !== "") byName.set(source.name, source);
  }
  const domains = new Map<ByteString, DomainRules>();
  const placed: PlacedRule[] = [];
  for (const source of sources) {
    const domain = compileDomain(source, options, findings, placed);
    domains.set(domain.name, domain);
  }
  const warnings = sortProblems(findings.warnings);
  if (findings.problems.length > 0) return { problems: sortProblems(findings.problems), warnings };
  return { tree: Object.freeze({ domains, rules: inFileOrder(placed) }), warnings };
}

function domainSource(file: Checked<"file">): DomainSource {
  const { domain, hash_tag: hashTag, atomic, descriptors } = file.fields;
  return {
    name: domain?.value ?? "",
    place: domain?.place ?? file.place,
    hashTag,
    atomic,
    descriptors: [...(descriptors?.value ?? [])],
  };
}

function merge(first: DomainSource, later: DomainSource, findings: Findings): void {
  for (const descriptor of later.descriptors) first.descriptors.push(descriptor);
  first.hashTag = mergeWord("hash_tag", first, first.hashTag, later.hashTag, findings);
  first.atomic = mergeWord("atomic", first, first.atomic, later.atomic, findings);
}

/** A word at the top of several files of a domain may be said once, or the same each time. */
function mergeWord<T>(
  word: string,
  domain: DomainSource,
  first: Given<T> | undefined,
  later: Given<T> | undefined,
  findings: Findings,
): Given<T> | undefined {
  if (first !== undefined && later !== undefined && later.value !== first.value) {
    const message = `domain \`${shown(domain.name)}\` already has another \`${word}\` at ${formatPlace(first.place)}`;
    findings.problems.push(problemAt(later.place, shown(domain.name), message));
  }
  return first ?? later;
}

function duplicateDomain(first: DomainSource, later: DomainSource): Problem {
  const message =
    `duplicate domain \`${shown(later.name)}\`: already defined at ${formatPlace(first.place)}; ` +
    "rename one, or set MERGE_DOMAIN_CONFIG=true to add their rules together";
  return problemAt(later.place, "", message);
}

function compileDomain(
  source: DomainSource,
  options: CompileOptions,
  findings: Findings,
  rules: PlacedRule[],
): DomainRules {
  const name = toBytes(source.name);
  const { hashTag } = source;
  if (hashTag?.value === "") {
    findings.problems.push(problemAt(hashTag.place, shown(source.name), "`hash_tag` needs the key of an entry"));
  }
  const domain = {
    text: source.name,
    name,
    hashTag: hashTag === undefined ? undefined : toBytes(hashTag.value),
    atomic: source.atomic?.value ?? false,
    slidingLogMax: options.slidingLogMax ?? DEFAULT_LOG_LIMIT,
    keyPrefix: options.keyPrefix,
    sha256: options.sha256,
    findings,
    rules,
  };
  const { hashTag: tag, atomic } = domain;
  return Object.freeze({ name, root: compileLevel(domain, source.descriptors), hashTag: tag, atomic });
}

/** Domains may be spread over files; the rules are listed as they are written. */
function inFileOrder(placed: PlacedRule[]): readonly Rule[] {
  placed.sort(({ place: a }, { place: b }) => compareText(a.file, b.file) || a.line - b.line || a.column - b.column);
  return Object.freeze(placed.map(({ rule }) => rule));
}
