// Envoy's RateLimitService: bytes to request, verdict to bytes, errors to gRPC codes. It decides nothing itself.

import type { LimitRequest } from "../core/descriptor.ts";
import { NotReadyError, RequestError, StoreError, TooLargeError } from "../core/errors.ts";
import type { Limiter } from "../core/limiter.ts";
import type { Verdict } from "../core/verdict.ts";
import { type Call, GrpcCode, GrpcError, type UnaryHandler } from "../wire/door.ts";
import { decodeRequest, type RequestLimits } from "./decode-request.ts";
import { encodeResponse, type ResponseOptions } from "./encode-response.ts";

export const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** Taken off a call's own deadline, so that our answer is still heard. Milliseconds. */
const ANSWER_MARGIN_MS = 2;

export interface ServiceOptions {
  readonly limiter: Limiter;
  readonly limits: RequestLimits;
  readonly response: ResponseOptions;
  /** Told when a call ends without a verdict. */
  readonly onError: (error: unknown) => void;
}

export function shouldRateLimit(options: ServiceOptions): UnaryHandler {
  const encode = (request: LimitRequest, verdict: Verdict): Uint8Array =>
    encodeResponse(request, verdict, options.response);
  const fail = (error: unknown): never => {
    options.onError(error);
    throw toGrpcError(error);
  };
  return (message: Uint8Array, call: Call) => {
    try {
      const request = decodeRequest(message, options.limits);
      const verdict = options.limiter.decide(request, Math.max(0, call.timeoutMs - ANSWER_MARGIN_MS));
      if (!(verdict instanceof Promise)) return encode(request, verdict);
      return verdict.then((settled) => encode(request, settled)).catch(fail);
    } catch (error) {
      return fail(error);
    }
  };
}

/** UNAVAILABLE for what we could not decide, so that Envoy's `failure_mode_deny` rules; never UNKNOWN. */
function toGrpcError(error: unknown): unknown {
  if (error instanceof RequestError) return new GrpcError(GrpcCode.INVALID_ARGUMENT, error.message);
  if (error instanceof TooLargeError) return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, error.message);
  if (error instanceof NotReadyError || error instanceof StoreError) {
    return new GrpcError(GrpcCode.UNAVAILABLE, error.message, { cause: error });
  }
  return error;
}
