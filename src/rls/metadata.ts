// The dynamic metadata of an answer: what was asked, how long each descriptor should wait, and the `metadata` of the
// rules that let it pass.
// Unlike at envoyproxy/ratelimit, merging never changes a rule's own metadata, and rules with `detailed_metric` or
// `value_to_metric` keep theirs.

import type { Descriptor, LimitRequest } from "../core/descriptor.ts";
import type { Json, JsonObject } from "../core/rule-tree.ts";
import { toText } from "../core/text.ts";
import type { Verdict } from "../core/verdict.ts";

export function dynamicMetadata(request: LimitRequest, verdict: Verdict): JsonObject {
  const merged: { [key: string]: Json } = {};
  for (const { overLimit, limit, rule } of verdict.statuses) {
    if (limit !== undefined && !overLimit && rule?.metadata !== undefined) mergeInto(merged, rule.metadata);
  }
  const metadata: { [key: string]: Json } = {
    domain: toText(request.domain),
    descriptors: request.descriptors.map((descriptor, index) =>
      describe(descriptor, verdict.overLimit ? 0 : (verdict.statuses[index]?.delayUs ?? 0)),
    ),
  };
  if (request.hitsAddend !== 0) metadata["hitsAddend"] = request.hitsAddend;
  if (Object.keys(merged).length > 0) metadata["metadata"] = merged;
  return metadata;
}

/** `delay_ms`, where the request passes and should wait: whole milliseconds, rounded up so that nobody goes too early. */
function describe(descriptor: Descriptor, delayUs: number): JsonObject {
  const { entries, limit, hitsAddend } = descriptor;
  return {
    entries: entries.map(({ key, value }) => `${toText(key)}=${toText(value)}`),
    ...(limit === undefined
      ? {}
      : { limit: `requests_per_unit:${limit.requestsPerUnit} unit:${limit.unit?.toUpperCase() ?? "UNKNOWN"}` }),
    ...(hitsAddend === undefined ? {} : { hitsAddend }),
    ...(delayUs === 0 ? {} : { delay_ms: Math.ceil(delayUs / 1_000) }),
  };
}

/** The first value of a key wins; maps are merged, lists are not. */
function mergeInto(target: { [key: string]: Json }, source: JsonObject): void {
  for (const [key, value] of Object.entries(source)) {
    const present = target[key];
    if (present === undefined) target[key] = isMap(value) ? copyOf(value) : value;
    else if (isMap(present) && isMap(value)) mergeInto(present, value);
  }
}

/** `target` only ever holds maps that `copyOf` made, so they may be merged into. */
function isMap(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function copyOf(source: JsonObject): { [key: string]: Json } {
  const copy: { [key: string]: Json } = {};
  mergeInto(copy, source);
  return copy;
}
