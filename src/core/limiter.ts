// The limiter: match, key, store, verdict. It knows neither wires nor stores, only the ports.
import { compileLimit } from "./algorithms/registry.ts";
import { counterKey, keyHead, type Sha256 } from "./counter-key.ts";
import { type Decision, newDecision } from "./decision.ts";
import { type Descriptor, hitsOf, type LimitOverride, type LimitRequest } from "./descriptor.ts";
import { NotReadyError, RequestError } from "./errors.ts";
import type { Limit } from "./limit.ts";
import { UNIT_SECONDS, US_PER_SECOND } from "./limit-spec.ts";
import type { Check, CheckMode, Observer, Store } from "./ports.ts";
import { type DomainRules, match, overrideTagEntries, type Rule, type RuleTree } from "./rule-tree.ts";
import { type DescriptorStatus, mergeStatuses, tellingStatus, type Verdict } from "./verdict.ts";

export interface LimiterOptions {
  readonly store: Store;
  readonly observer: Observer;
  readonly sha256: Sha256;
  /** Stands in front of every counter key. */
  readonly keyPrefix: string;
  /** Refusals are counted and shown in the statuses, but every request passes. */
  readonly shadowMode: boolean;
  /** Every descriptor is a quota descriptor. */
  readonly quotaMode: boolean;
  readonly checkMode: CheckMode;
}

/** What is known of one limit of a descriptor before the store is asked. */
interface Found {
  readonly rule: Rule | undefined;
  readonly limit: Limit | undefined;
  /** Filled by the store; `undefined` when nothing is counted. */
  readonly decision: Decision | undefined;
  readonly hits: number;
}

/** Stands for a descriptor that nothing limits. */
const NOTHING: readonly Found[] = [{ rule: undefined, limit: undefined, decision: undefined, hits: 0 }];

export class Limiter {
  readonly #options: LimiterOptions;
  #tree: RuleTree | undefined;

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  /** The rules in force; `undefined` until some were loaded. Setting them swaps one reference: running calls finish with the old. */
  get tree(): RuleTree | undefined {
    return this.#tree;
  }

  set tree(tree: RuleTree) {
    this.#tree = tree;
  }

  /**
   * Decides a request: at once where the store answers at once, else by a promise.
   *
   * @param budgetMs how long the answer is of use, in milliseconds from now
   * @throws RequestError, NotReadyError (thrown); StoreError (thrown or as the rejection)
   */
  decide(request: LimitRequest, budgetMs: number): Verdict | Promise<Verdict> {
    if (request.domain === "") throw new RequestError("the rate limit domain must not be empty");
    if (request.descriptors.length === 0) throw new RequestError("the descriptor list must not be empty");
    const tree = this.#tree;
    if (tree === undefined) throw new NotReadyError("no rate limit configuration loaded");

    const checks: Check[] = [];
    const decisions: Decision[] = [];
    const founds = this.#findAll(tree, request, checks, decisions);
    const { store } = this.#options;
    const mode = this.#modeOf(tree.domains.get(request.domain)?.atomic === true, founds);
    const pending = checks.length === 0 ? undefined : store.evaluate(checks, mode, decisions, budgetMs);
    if (pending === undefined) return this.#conclude(request, founds);
    return pending.then(() => this.#conclude(request, founds));
  }

  /** Finds what limits each descriptor and adds the checks that the store has to answer. */
  #findAll(tree: RuleTree, request: LimitRequest, checks: Check[], decisions: Decision[]): (readonly Found[])[] {
    const domain = tree.domains.get(request.domain);
    if (domain === undefined) {
      for (const _ of request.descriptors) this.#options.observer.domainNotFound(request.domain);
      return request.descriptors.map(() => NOTHING);
    }
    const matched = request.descriptors.map((descriptor) =>
      descriptor.limit === undefined ? match(domain, descriptor.entries) : NO_RULES,
    );
    const replaced = replacedNames(matched);
    const ask = (rule: Rule | undefined, limit: Limit, key: string, hits: number, role: number): Found => {
      const decision = newDecision();
      if (limit.never) {
        decision.allowed = hits < 0;
        decision.retryAfterUs = hits < 0 ? 0 : -1;
      } else {
        checks.push({ limit, key, hits, role });
        decisions.push(decision);
      }
      return { rule, limit, decision, hits };
    };
    return request.descriptors.map((descriptor, index) => {
      const hits = hitsOf(descriptor, request);
      if (descriptor.limit !== undefined) {
        const { limit, key } = this.#overridden(domain, descriptor, descriptor.limit);
        return [ask(undefined, limit, key, hits, this.#options.quotaMode ? index + 1 : 0)];
      }
      const founds: Found[] = [];
      const rules = (matched[index] ?? NO_RULES).filter(({ name, unlimited }) => unlimited || !replaced.has(name));
      const role = this.#roleOf(rules, index);
      for (const rule of rules) {
        const { limit, keyPlan } = rule;
        if (limit === undefined) founds.push({ rule, limit, decision: undefined, hits: 0 });
        else founds.push(ask(rule, limit, counterKey(keyPlan, descriptor.entries, this.#options.sha256), hits, role));
      }
      return founds.length === 0 ? NOTHING : founds;
    });
  }

  /** See `Check.role`. A quota descriptor that one of its limits refuses for good is over whatever the others say. */
  #roleOf(rules: readonly Rule[], index: number): number {
    if (rules.some(({ shadowMode }) => shadowMode)) return -1;
    if (!this.#options.quotaMode && !rules.some(({ quotaMode }) => quotaMode)) return 0;
    return rules.some(({ limit }) => limit?.never === true) ? -1 : index + 1;
  }

  /** How the checks of a request go together, with what is known before the store is asked. */
  #modeOf(atomic: boolean, founds: readonly (readonly Found[])[]): CheckMode {
    const { checkMode, quotaMode } = this.#options;
    if (!atomic) {
      return checkMode === "spare" && founds.some((each) => each.some(refusedByNever)) ? "spare_refused" : checkMode;
    }
    let quotasOver = 0;
    let quotasOpen = 0;
    let quotaPasses = false;
    for (const each of founds) {
      const refused = each.some(refusedByNever);
      const [{ rule } = {}] = each;
      if (rule?.unlimited === true) continue;
      if (quotaMode || rule?.quotaMode === true) {
        // A shadow rule passes, and so does what nothing limits.
        if (rule?.shadowMode === true || each === NOTHING) quotaPasses = true;
        else if (refused) quotasOver += 1;
        else quotasOpen += 1;
      } else if (refused && rule?.shadowMode !== true) {
        return "atomic_refused";
      }
    }
    if (quotaPasses) return "atomic_quota_passes";
    return quotasOver > 0 && quotasOpen === 0 ? "atomic_refused" : "atomic";
  }

  /** The limit and the counter of a descriptor that brings its own limit: a fixed window of its unit. */
  #overridden(domain: DomainRules, descriptor: Descriptor, override: LimitOverride): { limit: Limit; key: string } {
    if (override.unit === undefined || override.unitMultiplier < 1) {
      throw new RequestError("the limit of a descriptor has no valid unit");
    }
    const { keyPrefix, sha256 } = this.#options;
    const limit = compileLimit({
      algorithm: "fixed_window",
      requestsPerUnit: override.requestsPerUnit,
      periodUs: UNIT_SECONDS[override.unit] * US_PER_SECOND * override.unitMultiplier,
      burst: 1,
      countDenied: !domain.atomic,
      name: "",
    });
    if ("problem" in limit) throw new RequestError(`the limit of a descriptor cannot be used: ${limit.problem}`);
    const key = counterKey(
      {
        head: keyHead(keyPrefix, limit.shape, limit.periodUs, domain.name, sha256),
        tagEntries: overrideTagEntries(domain, descriptor.entries),
        sharedValues: undefined,
        hashTag: domain.hashTag,
      },
      descriptor.entries,
      sha256,
    );
    return { limit, key };
  }

  /** Turns decisions into statuses and tells the observer. */
  #conclude(request: LimitRequest, founds: readonly (readonly Found[])[]): Verdict {
    const statuses = founds.map((each) => tellingStatus(each.map((found) => this.#statusOf(request, found))));
    const verdict = mergeStatuses(statuses, this.#options);
    if (verdict.shadowed) this.#options.observer.shadowed();
    return verdict;
  }

  #statusOf(request: LimitRequest, { rule, limit, decision, hits }: Found): DescriptorStatus {
    const refused = decision?.allowed === false;
    const inShadow = rule?.shadowMode === true;
    const status = {
      refused,
      overLimit: refused && !inShadow,
      rule,
      limit,
      decision,
      delayUs: inShadow || this.#options.shadowMode ? 0 : (decision?.delayUs ?? 0),
      quotaMode: rule?.quotaMode === true,
    };
    if (limit !== undefined) this.#options.observer.decided(request.domain, status, hits);
    return status;
  }
}

/** A limit of zero refused the descriptor, without a counter that the store could see. */
function refusedByNever({ limit, decision }: Found): boolean {
  return limit?.never === true && decision?.allowed === false;
}

const NO_RULES: readonly Rule[] = [];
const NO_NAMES: ReadonlySet<string> = new Set();

/** Names that some rule of the request replaces. A rule that is itself replaced still counts. */
function replacedNames(matched: readonly (readonly Rule[])[]): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const rules of matched) {
    for (const rule of rules) {
      for (const name of rule.replaces) {
        names ??= new Set();
        names.add(name);
      }
    }
  }
  return names ?? NO_NAMES;
}
