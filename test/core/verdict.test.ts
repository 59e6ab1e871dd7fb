// How the statuses of a request become one verdict: shadow and quota, as at envoyproxy/ratelimit.
import { describe, expect, it } from "vitest";
import type { Rule } from "../../src/core/rule-tree.ts";
import { type DescriptorStatus, mergeStatuses } from "../../src/core/verdict.ts";
import { fc, test } from "../support/property.ts";

const UNLIMITED = { unlimited: true } as Rule;
const LIMITED = { unlimited: false } as Rule;

/** What a descriptor of a request may turn out to be. */
const STATUSES = {
  /** Nothing limits it, or its rule was replaced. */
  free: status(undefined, { overLimit: false }),
  unlimited: status(UNLIMITED, { overLimit: false }),
  ok: status(LIMITED, { overLimit: false }),
  over: status(LIMITED, { overLimit: true }),
  /** Refused, but its rule only watches. */
  shadow: status(LIMITED, { overLimit: false, refused: true }),
  quotaOk: status(LIMITED, { overLimit: false, quotaMode: true }),
  quotaOver: status(LIMITED, { overLimit: true, quotaMode: true }),
  quotaShadow: status(LIMITED, { overLimit: false, refused: true, quotaMode: true }),
} as const;
type Kind = keyof typeof STATUSES;

function status(
  rule: Rule | undefined,
  over: { overLimit: boolean; refused?: boolean; quotaMode?: boolean },
): DescriptorStatus {
  return {
    rule,
    limit: undefined,
    decision: undefined,
    overLimit: over.overLimit,
    refused: over.refused ?? over.overLimit,
    delayUs: 0,
    quotaMode: over.quotaMode ?? false,
  };
}

function overLimit(kinds: readonly Kind[], modes: { shadowMode?: boolean; quotaMode?: boolean } = {}): boolean {
  return merged(kinds, modes).overLimit;
}

function merged(kinds: readonly Kind[], modes: { shadowMode?: boolean; quotaMode?: boolean } = {}) {
  return mergeStatuses(
    kinds.map((kind) => STATUSES[kind]),
    { shadowMode: false, quotaMode: false, ...modes },
  );
}

describe("a request is refused", () => {
  it.each<[boolean, readonly Kind[]]>([
    [false, ["free"]],
    [false, ["unlimited"]],
    [false, ["ok"]],
    [true, ["over"]],
    [true, ["ok", "over"]],
    [true, ["over", "ok", "free", "unlimited"]],
    [false, ["shadow"]],
    [false, ["shadow", "ok"]],
    [true, ["shadow", "over"]],
    // Quotas refuse only together, and one alone is all of them.
    [true, ["quotaOver"]],
    [false, ["quotaOver", "quotaOk"]],
    [true, ["quotaOver", "quotaOver"]],
    [true, ["quotaOver", "ok", "free", "unlimited"]],
    [true, ["quotaOk", "over"]],
    [true, ["quotaOver", "over"]],
    [false, ["quotaOver", "quotaShadow"]],
    [false, ["quotaShadow"]],
  ])("%s: %j", (refused, kinds) => {
    expect(overLimit(kinds)).toBe(refused);
  });

  it.each<[boolean, readonly Kind[]]>([
    [true, ["over"]],
    [false, ["over", "ok"]],
    // Whatever is not limited passes and so saves the request, but unlimited rules take no part.
    [false, ["over", "free"]],
    [true, ["over", "unlimited"]],
    [false, ["unlimited"]],
    [false, ["free"]],
    [true, ["over", "quotaOver"]],
    [false, ["over", "shadow"]],
  ])("%s when the server is in quota mode: %j", (refused, kinds) => {
    expect(overLimit(kinds, { quotaMode: true })).toBe(refused);
  });
});

const anyKinds = fc.array(fc.constantFrom(...(Object.keys(STATUSES) as Kind[])), { maxLength: 6 });

describe("the server's shadow mode", () => {
  test("lets everything pass and says what it hid", [anyKinds, fc.boolean()], (kinds, quotaMode) => {
    const plain = merged(kinds, { quotaMode });
    const hidden = merged(kinds, { quotaMode, shadowMode: true });
    expect(plain.shadowed).toBe(false);
    expect(hidden.overLimit).toBe(false);
    expect(hidden.shadowed).toBe(plain.overLimit);
    expect(hidden.statuses).toEqual(plain.statuses);
  });
});

describe("the order of descriptors", () => {
  test("does not matter, and statuses keep it", [anyKinds, fc.boolean()], (kinds, quotaMode) => {
    expect(overLimit([...kinds].reverse(), { quotaMode })).toBe(overLimit(kinds, { quotaMode }));
    expect(merged(kinds).statuses).toEqual(kinds.map((kind) => STATUSES[kind]));
  });
});
