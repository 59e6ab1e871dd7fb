// A naive decoder of RateLimitRequest, written from the rules of protobuf alone: first everything becomes fields with
// BigInt numbers, then the fields are looked at. Slow, and plain enough to trust.
import { isUtf8 } from "node:buffer";
import type { Descriptor, Entry, LimitOverride, LimitRequest } from "../../src/core/descriptor.ts";

interface Field {
  readonly number: number;
  readonly type: number;
  /** A varint's 64 bits, or the bytes of a length-delimited field. Other fields have neither. */
  readonly value?: bigint;
  readonly bytes?: Uint8Array;
}

export interface OracleAnswer {
  readonly request: LimitRequest;
  /** A known field came with another wire type, which protobuf-es reads all the same. */
  readonly hasOtherWireTypes: boolean;
  /** Some string is not UTF-8, which protobuf-es refuses. */
  readonly hasOtherText: boolean;
}

/** Throws when the bytes are no message. */
export function oracleDecode(message: Uint8Array): OracleAnswer {
  const seen = { otherWireTypes: false, otherText: false };
  const request = parse(message, 1);
  const known = (fields: readonly Field[], number: number, type: number): Field[] => {
    const all = fields.filter((field) => field.number === number);
    if (all.some((field) => field.type !== type)) seen.otherWireTypes = true;
    return all.filter((field) => field.type === type);
  };
  const text = (fields: readonly Field[], number: number): string => {
    const all = known(fields, number, 2).map((field) => Buffer.from(field.bytes ?? []));
    if (!all.every(isUtf8)) seen.otherText = true;
    return all.at(-1)?.toString("latin1") ?? "";
  };
  const varint = (fields: readonly Field[], number: number): bigint | undefined =>
    known(fields, number, 0).at(-1)?.value;
  const uint32 = (fields: readonly Field[], number: number): number =>
    Number(BigInt.asUintN(32, varint(fields, number) ?? 0n));
  /** Merging messages is reading them one after the other. */
  const merged = (fields: readonly Field[], number: number, depth: number): Field[] | undefined => {
    const all = known(fields, number, 2);
    return all.length === 0 ? undefined : all.flatMap((field) => parse(field.bytes ?? new Uint8Array(), depth));
  };
  const descriptors = known(request, 2, 2).map((field): Descriptor => {
    const fields = parse(field.bytes ?? new Uint8Array(), 2);
    const entries = known(fields, 1, 2).map((entryField): Entry => {
      const entry = parse(entryField.bytes ?? new Uint8Array(), 3);
      return { key: text(entry, 1), value: text(entry, 2) };
    });
    const limitFields = merged(fields, 2, 3);
    let limit: LimitOverride | undefined;
    if (limitFields !== undefined) {
      const multiplierFields = merged(limitFields, 3, 4);
      const unitMultiplier = multiplierFields === undefined ? 1 : uint32(multiplierFields, 1);
      const unit = ([undefined, "second", "minute", "hour", "day", "month", "year", "week"] as const)[
        uint32(limitFields, 2)
      ];
      limit = {
        requestsPerUnit: uint32(limitFields, 1),
        unit: unitMultiplier === 0 ? undefined : unit,
        unitMultiplier,
      };
    }
    const hitsFields = merged(fields, 3, 3);
    const hits = hitsFields === undefined ? undefined : (varint(hitsFields, 1) ?? 0n);
    const most = BigInt(Number.MAX_SAFE_INTEGER);
    return {
      entries,
      hitsAddend: hits === undefined ? undefined : Number(hits > most ? most : hits),
      isNegativeHits: (varint(fields, 4) ?? 0n) !== 0n,
      limit,
    };
  });
  return {
    request: { domain: text(request, 1), descriptors, hitsAddend: uint32(request, 3) },
    hasOtherWireTypes: seen.otherWireTypes,
    hasOtherText: seen.otherText,
  };
}

function parse(bytes: Uint8Array, depth: number): Field[] {
  const fields: Field[] = [];
  let at = 0;

  function take(count: number): Uint8Array {
    if (at + count > bytes.length) throw new Error("too short");
    at += count;
    return bytes.subarray(at - count, at);
  }

  function varint(): bigint {
    let value = 0n;
    for (let index = 0n; index < 10n; index++) {
      const byte = take(1)[0] ?? 0;
      value |= BigInt(byte & 0x7f) << (7n * index);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new Error("varint too long");
  }

  function field(level: number): Field {
    const start = at;
    const tag = varint();
    if (at - start > 5 || tag >= 2n ** 32n) throw new Error("tag too long");
    const number = Number(tag >> 3n);
    const type = Number(tag & 7n);
    if (number === 0) throw new Error("field 0");
    switch (type) {
      case 0:
        return { number, type, value: varint() };
      case 1:
        take(8);
        return { number, type };
      case 2: {
        const length = varint();
        if (length > BigInt(bytes.length)) throw new Error("too long");
        return { number, type, bytes: take(Number(length)) };
      }
      case 3: {
        if (level >= 100) throw new Error("too deep");
        for (;;) {
          const inner = field(level + 1);
          if (inner.type !== 4) continue;
          if (inner.number !== number) throw new Error("wrong end of group");
          return { number, type };
        }
      }
      case 4:
        return { number, type };
      case 5:
        take(4);
        return { number, type };
      default:
        throw new Error("no such wire type");
    }
  }

  while (at < bytes.length) {
    const next = field(depth);
    if (next.type === 4) throw new Error("end of no group");
    fields.push(next);
  }
  return fields;
}
