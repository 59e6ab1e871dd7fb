// What the words of a `rate_limit` mean together: one period, an algorithm and its burst, names. Everything that
// contradicts something else is reported; the numbers themselves are checked by the algorithm.
import { MAX_PERIOD_US } from "../core/algorithms/algorithm.ts";
import { compileLimit } from "../core/algorithms/registry.ts";
import { MAX_LOG_LIMIT } from "../core/algorithms/sliding-log.ts";
import { parseDuration } from "../core/duration.ts";
import type { Limit } from "../core/limit.ts";
import { type AlgorithmName, UNIT_SECONDS, type Unit, US_PER_SECOND, WINDOWS } from "../core/limit-spec.ts";
import { nearestWord } from "./nearest-word.ts";
import { type Findings, problemAt, shown } from "./problem.ts";
import type { Checked, Given } from "./schema.ts";

export interface RateLimit {
  /** `undefined` when unlimited, and when something was reported. */
  readonly limit: Limit | undefined;
  readonly unlimited: boolean;
  readonly name: string;
  readonly replaces: readonly string[];
}

/** What a limit depends on beside its own words. */
export interface RateLimitContext {
  /** The domain charges requests to all of their limits or none, so refused hits to none. */
  readonly atomic: boolean;
  /** Largest limit of a sliding_window_log. */
  readonly slidingLogMax: number;
}

type RateLimitMap = Checked<"rate_limit">;

const UNITS = Object.keys(UNIT_SECONDS) as Unit[];

/** Words that say how to count, and so do nothing in an unlimited rule. */
const COUNTING_WORDS = [
  "unit_multiplier",
  "algorithm",
  "burst",
  "max_delay",
  "refill_interval",
  "segments",
  "count_denied",
] as const;

export function compileRateLimit(given: RateLimitMap, context: RateLimitContext, findings: Findings): RateLimit {
  const { fields } = given;
  const unlimited = fields.unlimited?.value ?? false;
  const name = fields.name?.value ?? "";
  for (const replaced of fields.replaces?.value ?? []) {
    const other = replaced.fields.name;
    if (other === undefined || other.value === "" || other.value !== name) continue;
    report(findings, given, other, `a limit cannot replace itself, and \`${shown(name)}\` is its own name`);
  }
  if (unlimited) checkUnlimited(given, findings);
  return Object.freeze({
    limit: unlimited ? undefined : limitOf(given, name, context, findings),
    unlimited,
    name,
    replaces: Object.freeze((fields.replaces?.value ?? []).map((replaced) => replaced.fields.name?.value ?? "")),
  });
}

/** As at envoyproxy/ratelimit, a word that is no unit at all may stand beside `unlimited`. */
function checkUnlimited(given: RateLimitMap, findings: Findings): void {
  const { unit, period } = given.fields;
  if (unit !== undefined && unitOf(unit.value) !== undefined) {
    report(findings, given, unit, "an unlimited rule has no `unit`: remove it or `unlimited`");
  }
  if (period !== undefined) {
    report(findings, given, period, "an unlimited rule has no `period`: remove it or `unlimited`");
  }
  for (const word of COUNTING_WORDS) {
    const field = given.fields[word];
    if (field === undefined) continue;
    findings.warnings.push(problemAt(field.place, given.path, `\`${word}\` does nothing beside \`unlimited\``));
  }
}

function limitOf(
  given: RateLimitMap,
  name: string,
  { atomic, slidingLogMax }: RateLimitContext,
  findings: Findings,
): Limit | undefined {
  const { fields } = given;
  const { max_delay: maxDelay, refill_interval: refillInterval } = fields;
  const algorithm = fields.algorithm?.value ?? "fixed_window";
  const inPlace = areWordsInPlace(given, algorithm, atomic, findings);
  const maxDelayUs = maxDelay && durationOf(given, maxDelay, "delay", findings);
  const refillIntervalUs = refillInterval && durationOf(given, refillInterval, "interval", findings);
  const isPeriod = refillInterval !== undefined && fields.unit === undefined && fields.period === undefined;
  const periodUs = isPeriod ? refillIntervalUs : periodOf(given, findings);
  if (periodUs === undefined || !inPlace || !given.complete) return undefined;
  if (maxDelay !== undefined && maxDelayUs === undefined) return undefined;
  if (algorithm === "sliding_window_log" && (fields.requests_per_unit?.value ?? 0) > slidingLogMax) {
    const raise = slidingLogMax < MAX_LOG_LIMIT ? `, raise WEIR_SLIDING_LOG_MAX (up to ${MAX_LOG_LIMIT})` : "";
    const message = `a sliding_window_log remembers every hit and so takes at most ${slidingLogMax} per window: lower the limit${raise} or use another algorithm`;
    report(findings, given, fields.requests_per_unit ?? given, message);
    return undefined;
  }
  const requestsPerUnit = fields.requests_per_unit?.value ?? 0;
  const limit = compileLimit({
    algorithm,
    requestsPerUnit,
    periodUs,
    burst: fields.burst?.value ?? Math.max(requestsPerUnit, 1),
    maxDelayUs,
    refillIntervalUs,
    segments: fields.segments?.value,
    countDenied: fields.count_denied?.value ?? (algorithm === "fixed_window" && !atomic),
    name,
  });
  if (!("problem" in limit)) return limit;
  findings.problems.push(problemAt(given.place, given.path, limit.problem));
  return undefined;
}

/** Whether every word means something for the algorithm and beside the others. Those that do not are reported. */
function areWordsInPlace(given: RateLimitMap, algorithm: AlgorithmName, atomic: boolean, findings: Findings): boolean {
  const { burst, max_delay: maxDelay, refill_interval: refillInterval, unit, period } = given.fields;
  const { count_denied: countDenied, segments } = given.fields;
  let inPlace = true;
  const refuse = (field: Pick<Given<unknown>, "place">, message: string): void => {
    report(findings, given, field, message);
    inPlace = false;
  };
  if (atomic && countDenied?.value === true) {
    refuse(countDenied, "an `atomic` domain charges no refused hits: remove one of the two");
  }
  // What was refused may be the algorithm, and then it is not a fixed_window.
  if (given.fields.algorithm === undefined && !given.complete) return false;
  if (burst !== undefined && WINDOWS.has(algorithm)) {
    refuse(
      burst,
      `a ${algorithm} has no \`burst\`: remove it, or set \`algorithm\` to gcra, leaky_bucket or token_bucket`,
    );
  }
  if (segments !== undefined && algorithm !== "sliding_window_counter") {
    refuse(
      segments,
      "`segments` belongs to sliding_window_counter: remove it, or set `algorithm` to sliding_window_counter",
    );
  }
  if (maxDelay !== undefined && algorithm !== "leaky_bucket") {
    refuse(maxDelay, "`max_delay` belongs to leaky_bucket: remove it, or set `algorithm` to leaky_bucket");
  } else if (maxDelay !== undefined && burst !== undefined) {
    refuse(burst, "with `max_delay` there is no `burst`: the delay says how many hits may wait");
  }
  if (refillInterval === undefined) return inPlace;
  const otherPeriod = unit ?? period ?? given.fields.unit_multiplier;
  if (algorithm !== "token_bucket") {
    refuse(refillInterval, "`refill_interval` belongs to token_bucket: remove it, or set `algorithm` to token_bucket");
  } else if (otherPeriod !== undefined) {
    const word = unit === otherPeriod ? "unit" : period === otherPeriod ? "period" : "unit_multiplier";
    refuse(
      otherPeriod,
      `\`refill_interval\` is the period, in which the bucket gains \`requests_per_unit\`: remove \`${word}\``,
    );
  }
  return inPlace;
}

/** Microseconds, at least 1; `undefined` when the text says none, which is reported. */
function durationOf(given: RateLimitMap, field: Given<string>, what: string, findings: Findings): number | undefined {
  const parsed = parseDuration(field.value);
  if (typeof parsed === "number" && parsed > 0) return parsed;
  const reason = typeof parsed === "number" ? "it must be longer than 0" : parsed.problem;
  report(findings, given, field, `\`${shown(field.value)}\` is no ${what}: ${reason}`);
  return undefined;
}

/** Microseconds; `undefined` when there is no period that can be used, which was reported. */
function periodOf(given: RateLimitMap, findings: Findings): number | undefined {
  const { period, unit_multiplier: multiplier } = given.fields;
  const unit = given.fields.unit?.value === "" ? undefined : given.fields.unit;
  if (unit === undefined && multiplier !== undefined) {
    report(findings, given, multiplier, "`unit_multiplier` multiplies a `unit`, and there is none");
  }
  if (unit !== undefined && period !== undefined) {
    report(findings, given, period, "`unit` and `period` say the same twice: remove one of them");
    return undefined;
  }
  let periodUs: number;
  if (period !== undefined) {
    const parsed = durationOf(given, period, "period", findings);
    if (parsed === undefined) return undefined;
    periodUs = parsed;
  } else if (unit !== undefined) {
    const known = unitOf(unit.value);
    if (known === undefined) {
      report(findings, given, unit, noUnit(unit.value));
      return undefined;
    }
    periodUs = UNIT_SECONDS[known] * US_PER_SECOND * (multiplier?.value ?? 1);
  } else {
    // A unit or period that was refused for its type is not missing.
    if (!given.complete) return undefined;
    report(
      findings,
      given,
      given,
      `a rate_limit needs a \`unit\` (${UNITS.join(", ")}), a \`period\` or \`unlimited\``,
    );
    return undefined;
  }
  if (periodUs <= MAX_PERIOD_US) return periodUs;
  report(findings, given, period ?? multiplier ?? given, "a period may last 142 years at the most");
  return undefined;
}

/** The peer compares in upper case, so do we: there are letters that have one but no lower case of their own. */
function unitOf(text: string): Unit | undefined {
  return UNITS.find((unit) => unit.toUpperCase() === text.toUpperCase());
}

function noUnit(text: string): string {
  const nearest = nearestWord(text, UNITS);
  const hint = nearest === undefined ? `use ${UNITS.join(", ")}, or a \`period\`` : `did you mean \`${nearest}\`?`;
  return `\`${shown(text)}\` is no unit: ${hint}`;
}

function report(findings: Findings, given: RateLimitMap, at: Pick<Given<unknown>, "place">, message: string): void {
  findings.problems.push(problemAt(at.place, given.path, message));
}
