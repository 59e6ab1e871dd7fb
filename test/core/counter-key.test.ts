// Keys: equal exactly when what they stand for is, with one hash tag that no value can end, empty or move.
import { describe, expect, it } from "vitest";
import { counterKey, type KeyPlan, keyHead, MAX_PART_BYTES } from "../../src/core/counter-key.ts";
import type { Entry } from "../../src/core/descriptor.ts";
import { hashTagOf } from "../support/hash-slot.ts";
import { fc, test } from "../support/property.ts";
import { sha256 } from "../support/sha256.ts";

const PERIOD_US = 60_000_000;

function plan(domain: string, tagEntries: number, more: Partial<KeyPlan> = {}): KeyPlan {
  const head = keyHead("", "gcra", PERIOD_US, domain, sha256);
  return { head, tagEntries, sharedValues: undefined, hashTag: undefined, ...more };
}

function entries(...pairs: [key: string, value: string][]): Entry[] {
  return pairs.map(([key, value]) => ({ key, value }));
}

describe("the text of a key", () => {
  const ann = entries(["tenant", "acme"], ["user", "ann"]);

  it("names prefix, version, shape, period, domain and entries", () => {
    const head = keyHead("pre:", "fixed_window", PERIOD_US, "edge", sha256);
    expect(counterKey(plan("edge", 1, { head }), ann, sha256)).toBe(
      "pre:weir1:fixed_window:60000000:{edge|tenant=acme}|user=ann",
    );
  });

  it.each([
    [0, "weir1:gcra:60000000:{edge}|tenant=acme|user=ann"],
    [1, "weir1:gcra:60000000:{edge|tenant=acme}|user=ann"],
    [2, "weir1:gcra:60000000:{edge|tenant=acme|user=ann}"],
  ])("ends the tag after %d entries", (tagEntries, key) => {
    expect(counterKey(plan("edge", tagEntries), ann, sha256)).toBe(key);
  });

  it("has a tag without entries as well", () => {
    expect(counterKey(plan("edge", 0), [], sha256)).toBe("weir1:gcra:60000000:{edge}");
  });

  it("makes the entry that the domain names the tag, and lists all entries after it", () => {
    expect(counterKey(plan("edge", 2, { hashTag: "user" }), ann, sha256)).toBe(
      "weir1:gcra:60000000:{edge|user=ann}||tenant=acme|user=ann",
    );
    expect(counterKey(plan("edge", 1, { hashTag: "session" }), ann, sha256)).toBe(
      "weir1:gcra:60000000:{edge|tenant=acme}|user=ann",
    );
  });

  it("puts shared values in the place of the request's", () => {
    const shared = plan("edge", 1, { sharedValues: [undefined, "a*"] });
    expect(counterKey(shared, ann, sha256)).toBe("weir1:gcra:60000000:{edge|tenant=acme}|user=a*");
  });

  it("escapes what means something in a key, and what cannot be printed", () => {
    const odd = entries(["a|b", "c=d"], ["{", "}"], ["%", "~"], [' "\\', "\x00\n\x7f\xff"]);
    expect(counterKey(plan("d", 4), odd, sha256)).toBe(
      'weir1:gcra:60000000:{d|a%7cb=c%3dd|%7b=%7d|%25=%7e| "\\=%00%0a%7f%ff}',
    );
  });

  it("shortens parts of more than 128 bytes to their SHA-256", () => {
    const [fits, long] = ["x".repeat(MAX_PART_BYTES), "x".repeat(MAX_PART_BYTES + 1)];
    expect(counterKey(plan(fits, 1), entries([fits, fits]), sha256)).toContain(`{${fits}|${fits}=${fits}}`);
    expect(counterKey(plan(long, 1), entries([long, long]), sha256)).toContain(
      `{~${sha256(long)}|~${sha256(long)}=~${sha256(long)}}`,
    );
  });
});

/** Bytes that separate, escape or frame, more often than others. */
const nasty = fc.constantFrom(..."{}|=%~ \x00\n\xff07ac".split(""));
const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const part = fc.oneof(
  { arbitrary: fc.string({ unit: nasty, maxLength: 5 }), weight: 5 },
  { arbitrary: fc.string({ unit: byte, maxLength: 8 }), weight: 3 },
  { arbitrary: fc.string({ unit: nasty, minLength: 120, maxLength: 140 }), weight: 1 },
  // What escaping and hashing produce, as a value of its own.
  {
    arbitrary: fc.constantFrom("%7c", "%", `~${sha256("x".repeat(200))}`, "x".repeat(200), "|a=b", "}|", "||"),
    weight: 2,
  },
);
const domain = part.filter((text) => text !== "");
const descriptor = fc.array(fc.record({ key: part, value: part }), { maxLength: 4 });

/** A counter's identity: two of them are the same exactly when this text is. */
function identity(ofDomain: string, ofEntries: readonly Entry[]): string {
  return JSON.stringify([ofDomain, ofEntries.map(({ key, value }) => [key, value])]);
}

/** Two descriptors of which the second is often nearly the first: one byte moved over a border, or split differently. */
const pairs = fc
  .tuple(domain, descriptor, domain, descriptor, fc.nat(), fc.nat())
  .map(([domainA, entriesA, domainB, entriesB, at, how]): [[string, Entry[]], [string, Entry[]]] => {
    const near = entriesA.map((entry) => ({ ...entry }));
    const entry = near[at % Math.max(1, near.length)];
    if (entry === undefined || how % 5 === 0)
      return [
        [domainA, entriesA],
        [domainB, entriesB],
      ];
    if (how % 5 === 1) Object.assign(entry, { key: `${entry.key}=${entry.value}`, value: "" });
    if (how % 5 === 2) Object.assign(entry, { key: entry.key.slice(0, -1), value: entry.key.slice(-1) + entry.value });
    if (how % 5 === 3) near.push({ key: "", value: "" });
    return [
      [domainA, entriesA],
      [domainA, near],
    ];
  });

describe("two keys of one rule", () => {
  test("are equal exactly when domain and entries are", [pairs, fc.nat({ max: 4 })], ([a, b], tagEntries) => {
    const keyOf = ([ofDomain, ofEntries]: [string, Entry[]]): string =>
      counterKey(plan(ofDomain, Math.min(tagEntries, ofEntries.length)), ofEntries, sha256);
    expect(keyOf(a) === keyOf(b)).toBe(identity(...a) === identity(...b));
  });

  test(
    "stay apart when one domain has a hash tag",
    [pairs, fc.nat({ max: 4 }), part],
    ([a, b], tagEntries, hashTag) => {
      const withTag = (tag: string | undefined, [ofDomain, ofEntries]: [string, Entry[]]): string =>
        counterKey(plan(ofDomain, Math.min(tagEntries, ofEntries.length), { hashTag: tag }), ofEntries, sha256);
      const tag = a[1][0]?.key ?? hashTag;
      expect(withTag(tag, a) === withTag(tag, b)).toBe(identity(...a) === identity(...b));
    },
  );
});

describe("any key", () => {
  const anyKey = fc
    .tuple(domain, descriptor, fc.nat({ max: 4 }), fc.boolean())
    .map(([ofDomain, ofEntries, tagEntries, tagged]) => ({
      ofEntries,
      ofDomain,
      tagEntries: Math.min(tagEntries, ofEntries.length),
      hashTag: tagged ? ofEntries.at(-1)?.key : undefined,
    }));

  test("has one hash tag, made of the domain and the entries of the tag alone", [anyKey], (given) => {
    const { ofDomain, ofEntries, tagEntries, hashTag } = given;
    const key = counterKey(plan(ofDomain, tagEntries, { hashTag }), ofEntries, sha256);
    expect(key.match(/[{}]/g)).toEqual(["{", "}"]);
    const tag = hashTagOf(key);
    expect(tag).not.toBe("");
    const inTag =
      hashTag === undefined
        ? ofEntries.slice(0, tagEntries)
        : ofEntries.filter(({ key: k }) => k === hashTag).slice(0, 1);
    // The same tag comes out of the tag's entries alone.
    expect(hashTagOf(counterKey(plan(ofDomain, inTag.length), inTag, sha256))).toBe(tag);
  });

  test("is printable and bounded", [anyKey], ({ ofDomain, ofEntries, tagEntries }) => {
    const key = counterKey(plan(ofDomain, tagEntries), ofEntries, sha256);
    expect(key).toMatch(/^[ -~]*$/);
    expect(key.length).toBeLessThanOrEqual(100 + (1 + 2 * ofEntries.length) * (3 * MAX_PART_BYTES + 2));
  });
});
