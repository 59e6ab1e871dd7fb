// Requests for tests, written as text: `descriptor("tenant=acme|user=ann")`.
import type { Descriptor, Entry, LimitOverride, LimitRequest } from "../../src/core/descriptor.ts";

/** What a descriptor may bring besides its entries. */
export type DescriptorExtras = Partial<Omit<Descriptor, "entries">>;

/** @param text entries as `key=value`, separated by bars; a key alone has an empty value; empty for no entries */
export function descriptor(text: string, extras: DescriptorExtras = {}): Descriptor {
  return { entries: entriesOf(text), hitsAddend: undefined, isNegativeHits: false, limit: undefined, ...extras };
}

export function entriesOf(text: string): Entry[] {
  if (text === "") return [];
  return text.split("|").map((entry) => {
    const [key = "", ...value] = entry.split("=");
    return { key, value: value.join("=") };
  });
}

/** A request of the domain `edge` unless another is given. */
export function request(
  descriptors: readonly (string | Descriptor)[],
  extras: Partial<Omit<LimitRequest, "descriptors">> = {},
): LimitRequest {
  return {
    domain: "edge",
    hitsAddend: 0,
    descriptors: descriptors.map((given) => (typeof given === "string" ? descriptor(given) : given)),
    ...extras,
  };
}

export function override(requestsPerUnit: number, unit: LimitOverride["unit"], unitMultiplier = 1): LimitOverride {
  return { requestsPerUnit, unit, unitMultiplier };
}
