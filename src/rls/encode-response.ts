// Encodes `envoy.service.ratelimit.v3.RateLimitResponse` from a verdict. Our own encoder, because the generated one makes
// an object per field. Fields with their default value are left out, as in proto3. Every string is valid UTF-8 and every
// header is clean, because Envoy copies them to clients unchecked and drops an answer that it cannot parse.

import type { LimitRequest } from "../core/descriptor.ts";
import type { Limit } from "../core/limit.ts";
import { MAX_UINT32, type Unit } from "../core/limit-spec.ts";
import type { Json } from "../core/rule-tree.ts";
import type { DescriptorStatus, Verdict } from "../core/verdict.ts";
import { ProtoWriter } from "../protobuf/proto-writer.ts";
import { cleanName, type HeaderNames, limitHeaders, remainingOf, secondsUntilReset } from "./answer.ts";
import { dynamicMetadata } from "./metadata.ts";

export interface ResponseOptions {
  /** The three headers to return; `undefined` for none. */
  readonly headers: HeaderNames | undefined;
  readonly dynamicMetadata: boolean;
}

const OK = 1;
const OVER_LIMIT = 2;

/** Numbers of `RateLimitResponse.RateLimit.Unit`; 0 is unknown. */
const WIRE_UNITS: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
  week: 7,
};

export function encodeResponse(request: LimitRequest, verdict: Verdict, options: ResponseOptions): Uint8Array {
  const writer = new ProtoWriter();
  writer.varint(1, verdict.overLimit ? OVER_LIMIT : OK);
  for (const status of verdict.statuses) {
    const start = writer.begin(2);
    writeStatus(writer, status);
    writer.end(start);
  }
  const headers = options.headers === undefined ? undefined : limitHeaders(verdict, options.headers);
  for (const { key, value } of headers ?? []) {
    const start = writer.begin(3);
    writer.text(1, key);
    writer.text(2, value);
    writer.end(start);
  }
  if (options.dynamicMetadata) writeStruct(writer, 6, dynamicMetadata(request, verdict));
  return writer.finish();
}

function writeStatus(writer: ProtoWriter, status: DescriptorStatus): void {
  writer.varint(1, status.overLimit ? OVER_LIMIT : OK);
  if (status.limit === undefined) {
    if (status.rule?.unlimited === true) writer.varint(3, MAX_UINT32);
    return;
  }
  writeCurrentLimit(writer, status.limit);
  const remaining = remainingOf(status);
  if (remaining > 0) writer.varint(3, remaining);
  const start = writer.begin(4);
  const seconds = secondsUntilReset(status);
  if (seconds > 0) writer.varint(1, seconds);
  writer.end(start);
}

function writeCurrentLimit(writer: ProtoWriter, limit: Limit): void {
  const start = writer.begin(2);
  if (limit.requestsPerUnit > 0) writer.varint(1, limit.requestsPerUnit);
  if (limit.unit !== undefined) writer.varint(2, WIRE_UNITS[limit.unit]);
  if (limit.name !== "") writer.text(3, cleanName(limit.name));
  if (limit.unitMultiplier !== 1) {
    const multiplier = writer.begin(4);
    writer.varint(1, Math.min(limit.unitMultiplier, MAX_UINT32));
    writer.end(multiplier);
  }
  writer.end(start);
}

/** `google.protobuf.Struct`: a map is a repeated pair of key (1) and value (2). */
function writeStruct(writer: ProtoWriter, field: number, json: { readonly [key: string]: Json }): void {
  const struct = writer.begin(field);
  for (const [key, value] of Object.entries(json)) {
    const pair = writer.begin(1);
    writer.text(1, key);
    writeValue(writer, 2, value);
    writer.end(pair);
  }
  writer.end(struct);
}

/** `google.protobuf.Value`: one of null (1), number (2), text (3), boolean (4), struct (5), list (6). */
function writeValue(writer: ProtoWriter, field: number, json: Json): void {
  const start = writer.begin(field);
  if (json === null) writer.varint(1, 0);
  else if (typeof json === "number") writer.double(2, json);
  else if (typeof json === "string") writer.text(3, json);
  else if (typeof json === "boolean") writer.varint(4, json ? 1 : 0);
  else if (isList(json)) {
    const list = writer.begin(6);
    for (const item of json) writeValue(writer, 1, item);
    writer.end(list);
  } else writeStruct(writer, 5, json);
  writer.end(start);
}

/** `Array.isArray` does not narrow a read-only array. */
function isList(json: readonly Json[] | { readonly [key: string]: Json }): json is readonly Json[] {
  return Array.isArray(json);
}
