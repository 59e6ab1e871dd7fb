// Decodes `envoy.service.ratelimit.v3.RateLimitRequest`, which anybody may have sent.
//
// Our own decoder because a generated one makes strings of UTF-8: Envoy sends header bytes unchecked, and a request
// must not fail for that, as failing means "pass" in Envoy. It is also several times faster and bounds what it makes.
// Everything else is as protobuf has it: unknown fields are skipped, the last of repeated scalars wins, repeated
// embedded messages are merged, and a known field with another wire type is an unknown one.
import type { ByteString, Descriptor, Entry, LimitOverride, LimitRequest } from "../core/descriptor.ts";
import { TooLargeError } from "../core/errors.ts";
import type { Unit } from "../core/limit-spec.ts";
import { ProtoReader, tagOf, WireType } from "../protobuf/proto-reader.ts";

export interface RequestLimits {
  /** Descriptors in a request. */
  readonly maxDescriptors: number;
  /** Entries in each of them. */
  readonly maxEntries: number;
}

const REQUEST_DOMAIN = tagOf(1, WireType.BYTES);
const REQUEST_DESCRIPTORS = tagOf(2, WireType.BYTES);
const REQUEST_HITS_ADDEND = tagOf(3, WireType.VARINT);
const DESCRIPTOR_ENTRIES = tagOf(1, WireType.BYTES);
const DESCRIPTOR_LIMIT = tagOf(2, WireType.BYTES);
const DESCRIPTOR_HITS_ADDEND = tagOf(3, WireType.BYTES);
const DESCRIPTOR_IS_NEGATIVE_HITS = tagOf(4, WireType.VARINT);
const ENTRY_KEY = tagOf(1, WireType.BYTES);
const ENTRY_VALUE = tagOf(2, WireType.BYTES);
const LIMIT_REQUESTS_PER_UNIT = tagOf(1, WireType.VARINT);
const LIMIT_UNIT = tagOf(2, WireType.VARINT);
const LIMIT_UNIT_MULTIPLIER = tagOf(3, WireType.BYTES);
const WRAPPER_VALUE = tagOf(1, WireType.VARINT);

/** By number of `envoy.type.v3.RateLimitUnit`, whose 0 means unknown, and the week, which Envoy's answers have at 7. */
const UNITS: readonly (Unit | undefined)[] = [undefined, "second", "minute", "hour", "day", "month", "year", "week"];

/** The unit that a number on the wire means; `undefined` for none. */
export function unitOf(number: number): Unit | undefined {
  return UNITS[number];
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Stands for a multiplier that was not sent, until the descriptor is complete. */
const ABSENT = -1;

/**
 * @throws RequestError when the bytes are no such message
 * @throws TooLargeError when the request goes over a limit
 */
export function decodeRequest(message: Uint8Array, limits: RequestLimits): LimitRequest {
  const reader = new ProtoReader(message);
  const descriptors: Descriptor[] = [];
  let domain: ByteString = "";
  let hitsAddend = 0;
  while (reader.more()) {
    const tag = reader.tag();
    switch (tag) {
      case REQUEST_DOMAIN:
        domain = reader.string();
        break;
      case REQUEST_DESCRIPTORS:
        if (descriptors.length >= limits.maxDescriptors) {
          throw new TooLargeError(`more than ${limits.maxDescriptors} descriptors`);
        }
        descriptors.push(readDescriptor(reader, limits.maxEntries));
        break;
      case REQUEST_HITS_ADDEND:
        hitsAddend = reader.uint32();
        break;
      default:
        reader.skip(tag);
    }
  }
  return { domain, descriptors, hitsAddend };
}

function readDescriptor(reader: ProtoReader, maxEntries: number): Descriptor {
  const entries: Entry[] = [];
  let limit: Mutable<LimitOverride> | undefined;
  let hitsAddend: number | undefined;
  let isNegativeHits = false;
  const outerEnd = reader.enter();
  while (reader.more()) {
    const tag = reader.tag();
    switch (tag) {
      case DESCRIPTOR_ENTRIES:
        if (entries.length >= maxEntries) throw new TooLargeError(`more than ${maxEntries} entries in a descriptor`);
        entries.push(readEntry(reader));
        break;
      case DESCRIPTOR_LIMIT:
        limit ??= { requestsPerUnit: 0, unit: undefined, unitMultiplier: ABSENT };
        mergeLimit(reader, limit);
        break;
      case DESCRIPTOR_HITS_ADDEND:
        hitsAddend = mergeUint64(reader, hitsAddend ?? 0);
        break;
      case DESCRIPTOR_IS_NEGATIVE_HITS:
        isNegativeHits = reader.bool();
        break;
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outerEnd);
  if (limit !== undefined) {
    if (limit.unitMultiplier === ABSENT) limit.unitMultiplier = 1;
    // A period of no length is no period.
    else if (limit.unitMultiplier === 0) limit.unit = undefined;
  }
  return { entries, hitsAddend, isNegativeHits, limit };
}

function readEntry(reader: ProtoReader): Entry {
  let key: ByteString = "";
  let value: ByteString = "";
  const outerEnd = reader.enter();
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === ENTRY_KEY) key = reader.string();
    else if (tag === ENTRY_VALUE) value = reader.string();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { key, value };
}

function mergeLimit(reader: ProtoReader, limit: Mutable<LimitOverride>): void {
  const outerEnd = reader.enter();
  while (reader.more()) {
    const tag = reader.tag();
    switch (tag) {
      case LIMIT_REQUESTS_PER_UNIT:
        limit.requestsPerUnit = reader.uint32();
        break;
      case LIMIT_UNIT:
        limit.unit = unitOf(reader.uint32());
        break;
      case LIMIT_UNIT_MULTIPLIER:
        limit.unitMultiplier = mergeUint32(reader, limit.unitMultiplier === ABSENT ? 0 : limit.unitMultiplier);
        break;
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outerEnd);
}

/** Reads a `google.protobuf.UInt32Value` over an earlier one, or over 0. */
function mergeUint32(reader: ProtoReader, earlier: number): number {
  let value = earlier;
  const outerEnd = reader.enter();
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === WRAPPER_VALUE) value = reader.uint32();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return value;
}

/** Reads a `google.protobuf.UInt64Value` over an earlier one, or over 0; at most 2^53-1. */
function mergeUint64(reader: ProtoReader, earlier: number): number {
  let value = earlier;
  const outerEnd = reader.enter();
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === WRAPPER_VALUE) value = reader.uint64();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return value;
}
