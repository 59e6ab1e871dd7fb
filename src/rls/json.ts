// The same question and answer as JSON, for `POST /json`: proto3 JSON of RateLimitRequest and RateLimitResponse.
import { fromBinary, fromJson, type JsonValue, toJsonString } from "@bufbuild/protobuf";
import type { Descriptor, LimitRequest } from "../core/descriptor.ts";
import { RequestError, TooLargeError } from "../core/errors.ts";
import { MAX_EXACT } from "../core/limit-spec.ts";
import type { Limiter } from "../core/limiter.ts";
import { toBytes } from "../core/text.ts";
import type { RateLimitDescriptor } from "../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.js";
import { RateLimitRequestSchema, RateLimitResponseSchema } from "../gen/envoy/service/ratelimit/v3/rls_pb.js";
import { type RequestLimits, unitOf } from "./decode-request.ts";
import { encodeResponse, type ResponseOptions } from "./encode-response.ts";

export interface JsonServiceOptions {
  readonly limiter: Limiter;
  readonly limits: RequestLimits;
  readonly response: ResponseOptions;
}

export interface JsonAnswer {
  readonly overLimit: boolean;
  readonly body: string;
}

/** Answers one JSON request. Rejects with RequestError, TooLargeError, NotReadyError or StoreError. */
export async function answerJson(body: Uint8Array, options: JsonServiceOptions): Promise<JsonAnswer> {
  const request = readRequest(body);
  refuseTooLarge(request, options.limits);
  const verdict = await options.limiter.decide(request, Number.POSITIVE_INFINITY);
  const response = fromBinary(RateLimitResponseSchema, encodeResponse(request, verdict, options.response));
  return { overLimit: verdict.overLimit, body: toJsonString(RateLimitResponseSchema, response) };
}

function readRequest(body: Uint8Array): LimitRequest {
  try {
    const json: JsonValue = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    const message = fromJson(RateLimitRequestSchema, json);
    return {
      domain: toBytes(message.domain),
      descriptors: message.descriptors.map(toDescriptor),
      hitsAddend: message.hitsAddend,
    };
  } catch (error) {
    throw new RequestError(error instanceof Error ? error.message : String(error));
  }
}

/** The same bounds as for messages, see `decodeRequest`. */
function refuseTooLarge({ descriptors }: LimitRequest, { maxDescriptors, maxEntries }: RequestLimits): void {
  if (descriptors.length > maxDescriptors) throw new TooLargeError(`more than ${maxDescriptors} descriptors`);
  if (descriptors.some(({ entries }) => entries.length > maxEntries)) {
    throw new TooLargeError(`more than ${maxEntries} entries in a descriptor`);
  }
}

function toDescriptor(message: RateLimitDescriptor): Descriptor {
  const { limit, hitsAddend } = message;
  return {
    entries: message.entries.map(({ key, value }) => ({ key: toBytes(key), value: toBytes(value) })),
    hitsAddend: hitsAddend === undefined ? undefined : Math.min(Number(hitsAddend), MAX_EXACT),
    isNegativeHits: message.isNegativeHits,
    limit:
      limit === undefined
        ? undefined
        : {
            requestsPerUnit: limit.requestsPerUnit,
            unit: limit.unitMultiplier === 0 ? undefined : unitOf(limit.unit),
            unitMultiplier: limit.unitMultiplier ?? 1,
          },
  };
}
