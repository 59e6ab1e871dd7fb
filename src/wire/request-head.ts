// What the headers of a call say, and whether it can be served at all. Knows no transport.
// The codes are grpc-go's; the HTTP statuses are those that gRPC over HTTP/2 asks for.
import { GrpcCode, GrpcError, type WireLimits } from "./door.ts";
import { parseTimeout } from "./grpc-timeout.ts";

export interface RequestHead {
  readonly method: string | undefined;
  readonly contentType: string | undefined;
  /** `grpc-encoding`. */
  readonly encoding: string | undefined;
  /** `grpc-timeout`. */
  readonly timeout: string | undefined;
  /** Size of all headers as RFC 9113 section 6.5.2 counts it: names, values and 32 bytes for each. */
  readonly headerListBytes: number;
}

/** Bytes that each header counts besides its name and value. */
export const HEADER_OVERHEAD_BYTES = 32;

/** A call that is answered at once, without a look at its data. */
export interface Refusal {
  /** Other than 200 only where the caller does not speak gRPC. */
  readonly httpStatus: 200 | 405 | 415;
  readonly error: GrpcError;
}

/** `application/grpc`, alone or with a message format or a parameter; `application/grpc-web` is another protocol. */
const GRPC_CONTENT_TYPE = /^application\/grpc(?:[+;]|$)/i;

/** Milliseconds until the caller gives up, `Infinity` when it does not say; or why the call is refused. */
export function checkHead(head: RequestHead, limits: WireLimits): number | Refusal {
  if (head.method !== "POST") {
    return { httpStatus: 405, error: new GrpcError(GrpcCode.INTERNAL, "a gRPC call is a POST") };
  }
  if (head.contentType === undefined || !GRPC_CONTENT_TYPE.test(head.contentType)) {
    return { httpStatus: 415, error: new GrpcError(GrpcCode.INTERNAL, "the content-type must be application/grpc") };
  }
  if (head.headerListBytes > limits.maxHeaderListBytes) {
    return refuse(GrpcCode.RESOURCE_EXHAUSTED, `the headers are larger than ${limits.maxHeaderListBytes} bytes`);
  }
  if (head.encoding !== undefined && head.encoding !== "identity") {
    return refuse(GrpcCode.UNIMPLEMENTED, "compressed messages are not supported");
  }
  if (head.timeout === undefined) return Number.POSITIVE_INFINITY;
  return parseTimeout(head.timeout) ?? refuse(GrpcCode.INTERNAL, "malformed grpc-timeout");
}

/** The refusal of a path that is not served. */
export function unknownMethod(path: string): Refusal {
  return refuse(GrpcCode.UNIMPLEMENTED, `unknown method ${path}`);
}

function refuse(code: GrpcCode, message: string): Refusal {
  return { httpStatus: 200, error: new GrpcError(code, message) };
}
