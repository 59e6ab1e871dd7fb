import { describe, expect, it } from "vitest";
import { type Descriptor, hitsOf, type LimitRequest } from "../../src/core/descriptor.ts";

describe("hits of a descriptor", () => {
  it.each([
    // its own, the request's, given back | hits
    [undefined, 0, false, 1],
    [undefined, 1, false, 1],
    [undefined, 7, false, 7],
    [undefined, 2 ** 32 - 1, false, 2 ** 32 - 1],
    [0, 0, false, 0],
    [0, 7, false, 0],
    [3, 0, false, 3],
    [3, 7, false, 3],
    [Number.MAX_SAFE_INTEGER, 1, false, Number.MAX_SAFE_INTEGER],
    [undefined, 0, true, -1],
    [undefined, 7, true, -7],
    [3, 7, true, -3],
    [Number.MAX_SAFE_INTEGER, 1, true, -Number.MAX_SAFE_INTEGER],
    // Giving back nothing is looking, and no negative zero.
    [0, 7, true, 0],
  ] as const)("own %s, request %d, given back %s: %d", (hitsAddend, ofRequest, isNegativeHits, hits) => {
    const descriptor: Descriptor = { entries: [], hitsAddend, isNegativeHits, limit: undefined };
    const request: LimitRequest = { domain: "d", descriptors: [descriptor], hitsAddend: ofRequest };
    expect(hitsOf(descriptor, request)).toBe(hits);
  });
});
