// The one place that builds counter keys.
//
// <prefix>weir1:<shape of the state>:<period us>:{<domain>|<entries of the tag>}|<further entries>
//
// Redis Cluster hashes only what stands between the first `{` and the next `}` (the hash tag), so all counters of one
// tag share a slot. Two keys are equal exactly when their shape, period, domain and entries are: separators, braces
// and unprintable bytes are escaped as %HH, and a part of more than 128 bytes becomes `~` and its SHA-256.
import type { ByteString, Entry } from "./descriptor.ts";

/** SHA-256 of the bytes, as 64 lower-case hexadecimal digits. */
export type Sha256 = (bytes: ByteString) => string;

/** Longest part (domain, key or value) that stands in a key as it is, in bytes. */
export const MAX_PART_BYTES = 128;

/** Everything about a counter's key that depends on the rule alone. */
export interface KeyPlan {
  /** The key up to and including the domain, see `keyHead`. */
  readonly head: string;
  /**
   * How many entries belong to the hash tag: up to and including the first *open* one. An entry is open when some rule
   * with its key on its level names no value or has a star, even if an exact rule matched; so the counters of one
   * tenant share a slot, and adding an exact rule beside an open one keeps its counters.
   */
  readonly tagEntries: number;
  /** Values that stand in for the request's, by position (`share_threshold`); `undefined` when there are none. */
  readonly sharedValues: readonly (ByteString | undefined)[] | undefined;
  /** The entry with this key, where there is one, is the tag instead (`hash_tag` of the domain). */
  readonly hashTag: ByteString | undefined;
}

/** The start of a key: prefix, format version, the shape of the state, the period, the domain. */
export function keyHead(prefix: string, shape: string, periodUs: number, domain: ByteString, sha256: Sha256): string {
  return `${prefix}weir1:${shape}:${periodUs}:{${escapePart(domain, sha256)}`;
}

/** The key of a descriptor's counter. */
export function counterKey(plan: KeyPlan, entries: readonly Entry[], sha256: Sha256): string {
  const tagIndex = plan.hashTag === undefined ? -1 : entries.findIndex((entry) => entry.key === plan.hashTag);
  const tag = entries[tagIndex];
  let key = plan.head;
  let tagEntries = plan.tagEntries;
  if (tag !== undefined) {
    // All entries follow the tag, after a doubled bar: no other layout has one, so none can give the same key.
    const value = plan.sharedValues?.[tagIndex] ?? tag.value;
    key += `|${escapePart(tag.key, sha256)}=${escapePart(value, sha256)}}|`;
    tagEntries = -1;
  }
  let index = 0;
  for (const entry of entries) {
    if (index === tagEntries) key += "}";
    const value = plan.sharedValues?.[index] ?? entry.value;
    key += `|${escapePart(entry.key, sha256)}=${escapePart(value, sha256)}`;
    index += 1;
  }
  return index === tagEntries ? `${key}}` : key;
}

/** Printable ASCII except the separators `|` and `=`, the braces, the escape `%` and the mark of a hash `~`. */
const PLAIN = /^[ -$&-<>-z]*$/;

function escapePart(part: ByteString, sha256: Sha256): string {
  if (part.length > MAX_PART_BYTES) return `~${sha256(part)}`;
  if (PLAIN.test(part)) return part;
  let escaped = "";
  for (let at = 0; at < part.length; at++) {
    const character = part.charAt(at);
    escaped += PLAIN.test(character) ? character : `%${part.charCodeAt(at).toString(16).padStart(2, "0")}`;
  }
  return escaped;
}
