// The grammar of a rule file as one table: the words, where they may stand, and what they take. The parser, its types,
// its messages and the JSON Schema for editors all come from it. What words mean together is decided in compile.ts.

import { ALGORITHMS } from "../core/algorithms/registry.ts";
import { MAX_SEGMENTS } from "../core/algorithms/sliding-counter-segments.ts";
import { DURATION_PATTERN } from "../core/duration.ts";
import { type AlgorithmName, MAX_UINT32, UNIT_SECONDS, type Unit } from "../core/limit-spec.ts";
import type { JsonObject } from "../core/rule-tree.ts";
import type { Place } from "./problem.ts";

/** The kinds of maps in a rule file. */
export type ShapeName = "file" | "descriptor" | "rate_limit" | "replaces";

interface Help {
  /** For editors. */
  readonly help: string;
}

/** A scalar of any kind, taken as it is written. A list of words or a pattern is for editors: see compile.ts. */
export interface TextField extends Help {
  readonly kind: "text";
  /** Missing or empty is a problem. */
  readonly required?: true;
  readonly words?: readonly string[];
  readonly pattern?: string;
}

export interface FlagField extends Help {
  readonly kind: "flag";
}

export interface IntegerField extends Help {
  readonly kind: "integer";
  readonly min: number;
  readonly max: number;
}

/** One of a few words, spelled exactly. */
export interface ChoiceField<Word extends string = string> extends Help {
  readonly kind: "choice";
  readonly choices: readonly Word[];
}

/** A map with keys and values of one's own. */
export interface FreeField extends Help {
  readonly kind: "free";
}

export interface MapField<Name extends ShapeName = ShapeName> extends Help {
  readonly kind: "map";
  readonly shape: Name;
}

export interface ListField<Name extends ShapeName = ShapeName> extends Help {
  readonly kind: "list";
  readonly shape: Name;
}

export type Field = TextField | FlagField | IntegerField | ChoiceField | FreeField | MapField | ListField;

const UNITS = Object.keys(UNIT_SECONDS) as Unit[];

export const SHAPES = {
  file: {
    domain: { kind: "text", required: true, help: "Name of this set of rules; requests say which domain they are in." },
    hash_tag: {
      kind: "text",
      help: "Key of the entry whose counters share a slot of a Redis Cluster, for descriptors that have it.",
    },
    atomic: { kind: "flag", help: "Charge a request to none of its limits unless every one of them has room." },
    descriptors: { kind: "list", shape: "descriptor", help: "Rules for the first entry of a descriptor." },
  },
  descriptor: {
    key: { kind: "text", required: true, help: "Key of the entry. A `*` stands for any text." },
    value: { kind: "text", help: "Value of the entry; without it, any value. A `*` stands for any text." },
    rate_limit: {
      kind: "map",
      shape: "rate_limit",
      help: "Limit of requests that end at this entry. Without it they pass, whatever rules without a value say.",
    },
    rate_limits: {
      kind: "list",
      shape: "rate_limit",
      help: "Several limits instead of one: all must pass, each has a counter of its own.",
    },
    descriptors: { kind: "list", shape: "descriptor", help: "Rules for the next entry." },
    shadow_mode: { kind: "flag", help: "Count and report, but never refuse." },
    quota_mode: { kind: "flag", help: "Refuse only when all quota rules of a request are over their limits." },
    share_threshold: { kind: "flag", help: "One counter for all values that the `*` matches." },
    detailed_metric: { kind: "flag", help: "Put the values of the request in the name of the statistic." },
    value_to_metric: { kind: "flag", help: "Put this entry's value in the name of the statistic." },
    metadata: { kind: "free", help: "Sent to the proxy as dynamic metadata when the descriptor passes." },
  },
  rate_limit: {
    requests_per_unit: {
      kind: "integer",
      min: 0,
      max: MAX_UINT32,
      help: "Hits per unit or period. 0, also when absent, refuses everything.",
    },
    unit: {
      kind: "text",
      words: UNITS,
      help: "Period of the limit, in any letter case. A month is 30 days, a year 365.",
    },
    unit_multiplier: { kind: "integer", min: 1, max: MAX_UINT32, help: "The period is this many units." },
    period: {
      kind: "text",
      pattern: DURATION_PATTERN,
      help: "Period of the limit instead of a unit: 500ms, 30s, 5m, 2h, 1d, 1h30m.",
    },
    algorithm: {
      kind: "choice",
      choices: Object.keys(ALGORITHMS) as AlgorithmName[],
      help: "How hits are counted; fixed_window unless set.",
    },
    burst: {
      kind: "integer",
      min: 1,
      max: MAX_UINT32,
      help: "Hits that may come at once (gcra, leaky_bucket, token_bucket); requests_per_unit unless set.",
    },
    max_delay: {
      kind: "text",
      pattern: DURATION_PATTERN,
      help: "Makes a leaky_bucket delay hits before it refuses them: none waits longer than this (200ms, 1s).",
    },
    refill_interval: {
      kind: "text",
      pattern: DURATION_PATTERN,
      help: "Period of a token_bucket that gains requests_per_unit at once at the end of each (10s), not evenly.",
    },
    segments: {
      kind: "integer",
      min: 1,
      max: MAX_SEGMENTS,
      help: "Makes a sliding_window_counter count so many parts of its window apart, and never let more than the limit pass.",
    },
    count_denied: {
      kind: "flag",
      help: "Charge refused hits too. The default is true for fixed_window and false for the others.",
    },
    unlimited: { kind: "flag", help: "No limit at all." },
    name: { kind: "text", help: "Shown in answers; target for `replaces` of other rules." },
    replaces: { kind: "list", shape: "replaces", help: "Limits that do not count for requests this rule applies to." },
  },
  replaces: {
    name: { kind: "text", required: true, help: "The `name` of a limit." },
  },
} as const satisfies Readonly<Record<ShapeName, Readonly<Record<string, Field>>>>;

/** What a map of a rule file is called in messages. */
export const SHAPE_TITLES: Readonly<Record<ShapeName, string>> = {
  file: "the top level",
  descriptor: "a descriptor",
  rate_limit: "a rate_limit",
  replaces: "an entry of replaces",
};

/** What the parser makes of a field. */
export type ValueOf<F> = F extends TextField
  ? string
  : F extends FlagField
    ? boolean
    : F extends IntegerField
      ? number
      : F extends ChoiceField<infer Word>
        ? Word
        : F extends FreeField
          ? JsonObject
          : F extends MapField<infer Name>
            ? Checked<Name>
            : F extends ListField<infer Name>
              ? readonly Checked<Name>[]
              : never;

/** A value and where it stands. */
export interface Given<T> {
  readonly place: Place;
  readonly value: T;
}

/** A map of a rule file whose words and types were checked. */
export interface Checked<Name extends ShapeName> {
  readonly place: Place;
  /** The rule that it is, or belongs to, for messages: `edge > tenant=acme`. */
  readonly path: string;
  /** False when a field was refused, so that a field's absence says nothing. */
  readonly complete: boolean;
  readonly fields: {
    readonly [Word in keyof (typeof SHAPES)[Name]]?: Given<ValueOf<(typeof SHAPES)[Name][Word]>>;
  };
}
