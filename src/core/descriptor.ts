// What a request is about, in core's own words. Transports map their messages to these types.
import type { Unit } from "./limit-spec.ts";

/**
 * A string of bytes: the code of each character (0 to 255) is one byte.
 *
 * Envoy sends header bytes unchecked, so keys, values and domains need not be UTF-8. Holding bytes keeps distinct
 * values distinct. Rule texts are turned into the same form when they are compiled; see `text.ts` for both ways.
 */
export type ByteString = string;

/** One key and its value; the value may be empty. */
export interface Entry {
  readonly key: ByteString;
  readonly value: ByteString;
}

/** A limit sent with a descriptor, used instead of the configured one. */
export interface LimitOverride {
  /** 0 to 2^32-1; 0 refuses everything. */
  readonly requestsPerUnit: number;
  /** `undefined` when the number on the wire means no unit: such a request is refused as invalid. */
  readonly unit: Unit | undefined;
  /** The period is this many units; 1 when absent on the wire. */
  readonly unitMultiplier: number;
}

/** An ordered list of entries, matched as a whole against the rule tree. It may be empty. */
export interface Descriptor {
  readonly entries: readonly Entry[];
  /** Hits of this descriptor alone, 0 to 2^53-1 (larger numbers saturate); `undefined` when it brings none. */
  readonly hitsAddend: number | undefined;
  /** The hits are given back instead of taken. */
  readonly isNegativeHits: boolean;
  readonly limit: LimitOverride | undefined;
}

/** One question to the limiter. */
export interface LimitRequest {
  readonly domain: ByteString;
  readonly descriptors: readonly Descriptor[];
  /** Hits for descriptors without their own, 0 to 2^32-1; 0 means 1. */
  readonly hitsAddend: number;
}

/**
 * Hits: an integer within ±(2^53-1). 0 looks without counting, a negative number gives back.
 * A descriptor's own number wins, 0 included; the request's 0 means 1 (as Envoy's API says).
 */
export function hitsOf(descriptor: Descriptor, request: LimitRequest): number {
  const hits = descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
  return descriptor.isNegativeHits && hits > 0 ? -hits : hits;
}
