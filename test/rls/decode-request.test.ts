import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { LimitRequest } from "../../src/core/descriptor.ts";
import { RequestError, TooLargeError } from "../../src/core/errors.ts";
import { toBytes } from "../../src/core/text.ts";
import { type RateLimitRequest, RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { decodeRequest, type RequestLimits } from "../../src/rls/decode-request.ts";
import { fc, test } from "../support/property.ts";
import { oracleDecode } from "./decode-request.oracle.ts";

const LIMITS: RequestLimits = { maxDescriptors: 1000, maxEntries: 64 };
const UNBOUNDED: RequestLimits = { maxDescriptors: Number.POSITIVE_INFINITY, maxEntries: Number.POSITIVE_INFINITY };

/** The bytes of a hexadecimal text; spaces separate what belongs together. */
function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(" ", ""), "hex");
}

/** The only descriptor of a request. */
function descriptorOf(descriptor: string): LimitRequest["descriptors"][number] | undefined {
  const bytes = hex(descriptor);
  return decodeRequest(Buffer.concat([Buffer.of(0x12, bytes.length), bytes]), LIMITS).descriptors[0];
}

/** What protobuf-es read, in core's words. */
function inCoreWords(request: RateLimitRequest): LimitRequest {
  const units = [undefined, "second", "minute", "hour", "day", "month", "year", "week"] as const;
  return {
    domain: toBytes(request.domain),
    hitsAddend: request.hitsAddend,
    descriptors: request.descriptors.map(({ entries, hitsAddend, isNegativeHits, limit }) => ({
      entries: entries.map(({ key, value }) => ({ key: toBytes(key), value: toBytes(value) })),
      hitsAddend:
        hitsAddend === undefined
          ? undefined
          : Number(hitsAddend > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : hitsAddend),
      isNegativeHits,
      limit: limit && {
        requestsPerUnit: limit.requestsPerUnit,
        unit: limit.unitMultiplier === 0 ? undefined : units[limit.unit],
        unitMultiplier: limit.unitMultiplier ?? 1,
      },
    })),
  };
}

const uint32s = fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 0xffff_ffff }));
const uint64s = fc.oneof(
  fc.bigInt(0n, 3n),
  fc.constantFrom(2n ** 53n - 1n, 2n ** 53n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
const texts = fc.string({ unit: "binary", maxLength: 12 }).map((text) => text.toWellFormed());
const maybe = <Value>(values: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(values, { nil: undefined });

const requests = fc
  .record({
    domain: texts,
    hitsAddend: uint32s,
    descriptors: fc.array(
      fc.record({
        entries: fc.array(fc.record({ key: texts, value: texts }), { maxLength: 4 }),
        hitsAddend: maybe(uint64s),
        isNegativeHits: fc.boolean(),
        limit: maybe(fc.record({ requestsPerUnit: uint32s, unit: fc.nat(9), unitMultiplier: maybe(uint32s) })),
      }),
      { maxLength: 4 },
    ),
  })
  .map(({ descriptors, ...rest }) =>
    create(RateLimitRequestSchema, {
      ...rest,
      // An absent field is one that is not there, for protobuf-es.
      descriptors: descriptors.map(({ hitsAddend, limit, ...others }) => ({
        ...others,
        ...(hitsAddend === undefined ? {} : { hitsAddend }),
        ...(limit === undefined
          ? {}
          : {
              limit: {
                requestsPerUnit: limit.requestsPerUnit,
                unit: limit.unit,
                ...(limit.unitMultiplier === undefined ? {} : { unitMultiplier: limit.unitMultiplier }),
              },
            }),
      })),
    }),
  );

const encoded = requests.map((request) => toBinary(RateLimitRequestSchema, request));

/** Some bytes of a valid message changed, added or taken away; often still a message, and an odd one. */
const mutated = fc
  .tuple(
    encoded,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom("set", "insert", "remove"), fc.nat(255)), { maxLength: 4 }),
  )
  .map(([bytes, changes]) => {
    const list = [...bytes];
    for (const [place, change, byte] of changes) {
      const at = place % (list.length + 1);
      if (change === "set") list[at] = byte;
      else if (change === "insert") list.splice(at, 0, byte);
      else list.splice(at, 1);
    }
    return Uint8Array.from(list);
  });

/** Fields that look like ours, nested at random, with any wire type and any number of repetitions. */
const fieldSoup = fc.letrec<{ message: Uint8Array; field: number[] }>((tie) => ({
  message: fc
    .array(tie("field"), { maxLength: 6, depthIdentifier: "soup" })
    .map((fields) => Uint8Array.from(fields.flat())),
  field: fc.oneof(
    { depthIdentifier: "soup", depthSize: "medium" },
    fc.tuple(fc.integer({ min: 1, max: 5 }), uint64s, fc.nat(3)).map(([number, value, padding]) => {
      return [number << 3, ...varint(value, padding)];
    }),
    fc.tuple(fc.integer({ min: 1, max: 5 }), fc.uint8Array({ minLength: 4, maxLength: 4 })).map(([number, bytes]) => {
      return [(number << 3) | 5, ...bytes];
    }),
    fc.tuple(fc.integer({ min: 1, max: 5 }), fc.uint8Array({ minLength: 8, maxLength: 8 })).map(([number, bytes]) => {
      return [(number << 3) | 1, ...bytes];
    }),
    fc.tuple(fc.integer({ min: 1, max: 5 }), tie("message")).map(([number, bytes]) => {
      return [(number << 3) | 2, ...varint(BigInt(bytes.length), 0), ...bytes];
    }),
    fc.tuple(fc.integer({ min: 1, max: 5 }), tie("message")).map(([number, bytes]) => {
      return [(number << 3) | 3, ...bytes, (number << 3) | 4];
    }),
  ),
})).message;

/** A varint, longer than it must be by some bytes. */
function varint(value: bigint, padding: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  for (let index = 0; index < padding && bytes.length < 10; index++) {
    bytes.push((bytes.pop() ?? 0) | 0x80, 0);
  }
  return bytes;
}

/** What the decoder says: the request, or that the bytes are none. Any other error fails the test. */
function decoded(bytes: Uint8Array): LimitRequest | "malformed" {
  try {
    return decodeRequest(bytes, UNBOUNDED);
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    return "malformed";
  }
}

function oracleSays(bytes: Uint8Array): LimitRequest | "malformed" {
  try {
    return oracleDecode(bytes).request;
  } catch {
    return "malformed";
  }
}

describe("decodeRequest", () => {
  test("reads what protobuf-es writes", [requests], (request) => {
    const bytes = toBinary(RateLimitRequestSchema, request);
    expect(decodeRequest(bytes, LIMITS)).toEqual(inCoreWords(request));
    // From a place in a larger buffer, too.
    const inside = new Uint8Array([9, 9, ...bytes, 9]).subarray(2, -1);
    expect(decodeRequest(inside, LIMITS)).toEqual(inCoreWords(request));
  });

  test(
    "agrees with the naive decoder on damaged messages",
    [mutated],
    (bytes) => {
      expect(decoded(bytes)).toEqual(oracleSays(bytes));
    },
    { runs: 2000 },
  );

  test(
    "agrees with the naive decoder on odd messages",
    [fieldSoup],
    (bytes) => {
      expect(decoded(bytes)).toEqual(oracleSays(bytes));
    },
    { runs: 2000 },
  );

  test(
    "agrees with the naive decoder on any bytes",
    [fc.uint8Array({ maxLength: 40 })],
    (bytes) => {
      expect(decoded(bytes)).toEqual(oracleSays(bytes));
    },
    { runs: 2000 },
  );

  // Deliberate differences from protobuf-es: strings that are not UTF-8 keep their bytes, a known field with another
  // wire type is unknown (protobuf-es reads it as if it had the right one), and a field that reaches past the end of
  // its message is malformed (protobuf-es reads on).
  test(
    "agrees with protobuf-es where that keeps to the rules",
    [fc.oneof(mutated, fieldSoup)],
    (bytes) => {
      const ours = decoded(bytes);
      if (ours === "malformed") return;
      const { hasOtherWireTypes, hasOtherText } = oracleDecode(bytes);
      if (hasOtherWireTypes || hasOtherText) return;
      expect(ours).toEqual(inCoreWords(fromBinary(RateLimitRequestSchema, bytes)));
    },
    { runs: 2000 },
  );

  test(
    "a message that ends early is whole or malformed, never anything else",
    [encoded],
    (bytes) => {
      for (let end = 0; end < bytes.length; end++) {
        const cut = bytes.subarray(0, end);
        expect(decoded(cut)).toEqual(oracleSays(cut));
      }
    },
    { runs: 30 },
  );

  it("keeps the bytes of strings, whatever they are", () => {
    const entry = hex("0a 03 ff00c3 12 02 fe80");
    const request = decodeRequest(Buffer.concat([hex("0a 02 c328 12 0b 0a 09"), entry]), LIMITS);
    expect(request).toEqual({
      domain: "\xc3(",
      hitsAddend: 0,
      descriptors: [
        {
          entries: [{ key: "\xff\x00\xc3", value: "\xfe\x80" }],
          hitsAddend: undefined,
          isNegativeHits: false,
          limit: undefined,
        },
      ],
    });
  });

  it("reads nothing as an empty request and an empty descriptor as one", () => {
    expect(decodeRequest(new Uint8Array(0), LIMITS)).toEqual({ domain: "", descriptors: [], hitsAddend: 0 });
    expect(descriptorOf("")).toEqual({
      entries: [],
      hitsAddend: undefined,
      isNegativeHits: false,
      limit: undefined,
    });
  });

  it("tells hits that are 0 from hits that are absent, and keeps large ones in range", () => {
    expect(descriptorOf("1a 00")?.hitsAddend).toBe(0);
    expect(descriptorOf("1a 02 08 00")?.hitsAddend).toBe(0);
    expect(descriptorOf("1a 09 08 ffffffffffffff0f")?.hitsAddend).toBe(2 ** 53 - 1);
    expect(descriptorOf("1a 09 08 8080808080808010")?.hitsAddend).toBe(2 ** 53 - 1);
    expect(descriptorOf("1a 0b 08 ffffffffffffffffff01")?.hitsAddend).toBe(2 ** 53 - 1);
  });

  it("merges embedded messages that come several times", () => {
    expect(descriptorOf("1a 02 08 05 1a 00")?.hitsAddend).toBe(5);
    expect(descriptorOf("1a 02 08 05 1a 02 08 06")?.hitsAddend).toBe(6);
    // requests_per_unit 7 with multiplier 3, then unit HOUR, then an empty multiplier.
    expect(descriptorOf("12 06 08 07 1a 02 08 03 12 02 10 03 12 02 1a 00")?.limit).toEqual({
      requestsPerUnit: 7,
      unit: "hour",
      unitMultiplier: 3,
    });
  });

  it("knows the units by number", () => {
    const unitOf = (number: string): unknown => descriptorOf(`12 02 10 ${number}`)?.limit?.unit;
    const all = ["00", "01", "02", "03", "04", "05", "06", "07", "08", "7f"].map(unitOf);
    expect(all).toEqual([undefined, "second", "minute", "hour", "day", "month", "year", "week", undefined, undefined]);
    // -1, and 2^32 + 1, whose low 32 bits are 1.
    expect(descriptorOf("12 0b 10 ffffffffffffffffff01")?.limit?.unit).toBe(undefined);
    expect(descriptorOf("12 06 10 8180808010")?.limit?.unit).toBe("second");
  });

  it("takes an absent multiplier as 1, and one of 0 as no period", () => {
    expect(descriptorOf("12 02 10 04")?.limit).toEqual({ requestsPerUnit: 0, unit: "day", unitMultiplier: 1 });
    expect(descriptorOf("12 04 10 04 1a 00")?.limit).toEqual({
      requestsPerUnit: 0,
      unit: undefined,
      unitMultiplier: 0,
    });
  });

  it("keeps the low 32 bits of larger numbers", () => {
    expect(decodeRequest(hex("18 8580808010"), LIMITS).hitsAddend).toBe(5);
    expect(decodeRequest(hex("18 ffffffffffffffffff01"), LIMITS).hitsAddend).toBe(0xffff_ffff);
  });

  it("takes any varint but 0 for true", () => {
    expect(descriptorOf("20 00")?.isNegativeHits).toBe(false);
    expect(descriptorOf("20 8000")?.isNegativeHits).toBe(false);
    expect(descriptorOf("20 02")?.isNegativeHits).toBe(true);
    expect(descriptorOf("20 8080808010")?.isNegativeHits).toBe(true);
    expect(descriptorOf("20 01 20 00")?.isNegativeHits).toBe(false);
  });

  it("skips what it does not know, and what has another wire type", () => {
    const unknown = "20 01 29 0000000000000000 32 01 00 35 00000000 3b 40 01 3c";
    const wrongTypes = "08 01 15 00000000 1a 00";
    expect(decodeRequest(hex(`${unknown} ${wrongTypes} 18 07`), LIMITS)).toEqual({
      domain: "",
      descriptors: [],
      hitsAddend: 7,
    });
  });

  it("allows groups 99 deep around nothing, and no deeper", () => {
    const nested = (depth: number): Buffer => Buffer.concat([Buffer.alloc(depth, 0x23), Buffer.alloc(depth, 0x24)]);
    expect(decoded(nested(99))).toEqual({ domain: "", descriptors: [], hitsAddend: 0 });
    expect(decoded(nested(100))).toBe("malformed");
    expect(decoded(Buffer.alloc(4 << 20, 0x23))).toBe("malformed");
    // A descriptor takes one of the levels, and gives it back.
    const within = (depth: number): Buffer =>
      Buffer.concat([hex("12"), Buffer.of(...varint(BigInt(2 * depth), 0)), nested(depth)]);
    expect(decoded(Buffer.concat([within(98), within(98), nested(99)]))).not.toBe("malformed");
    expect(decoded(within(99))).toBe("malformed");
  });

  it.each([
    ["field number 0", "00 01"],
    ["wire type 6", "0e"],
    ["wire type 7", "0f"],
    ["a tag of six bytes", "8a8080808000"],
    ["a tag above 32 bits", "8880808010 00"],
    ["a varint of eleven bytes", "18 8080808080808080808000"],
    ["a skipped varint of eleven bytes", "20 8080808080808080808000"],
    ["a string that is too short", "0a 05 61"],
    ["a length above 32 bits", "0a 8180808010 61"],
    ["the end of no group", "24"],
    ["the end of another group", "23 2c"],
    ["a group without an end", "23"],
    ["a group that ends outside of its message", "12 01 23 24"],
    ["an entry past the end of its descriptor", "12 02 0a 05 0a 03 61 62 63"],
    ["a number past the end of its message", "12 03 1a 01 08 05"],
  ])("refuses %s", (_name, bytes) => {
    expect(() => decodeRequest(hex(bytes), LIMITS)).toThrow(RequestError);
  });

  it("refuses more descriptors or entries than allowed", () => {
    const limits: RequestLimits = { maxDescriptors: 2, maxEntries: 3 };
    expect(decodeRequest(hex("12 00 12 00"), limits).descriptors).toHaveLength(2);
    expect(() => decodeRequest(hex("12 00 12 00 12 00"), limits)).toThrow(new TooLargeError("more than 2 descriptors"));
    expect(decodeRequest(hex("12 06 0a 00 0a 00 0a 00"), limits).descriptors[0]?.entries).toHaveLength(3);
    expect(() => decodeRequest(hex("12 08 0a 00 0a 00 0a 00 0a 00"), limits)).toThrow(
      new TooLargeError("more than 3 entries in a descriptor"),
    );
  });
});
