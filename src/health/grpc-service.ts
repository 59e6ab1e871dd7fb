// The standard gRPC health service, for Envoy's health checks and Kubernetes probes.
//
// envoyproxy/ratelimit always answers SERVING for the empty name; here both names follow the health of the server, so
// that a probe that names no service sees it, too.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../gen/grpc/health/v1/health_pb.js";
import { GrpcCode, GrpcError, type GrpcRoutes, type ReplyStream } from "../wire/door.ts";
import type { Health } from "./health.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";

/** The server as a whole, and the name that envoyproxy/ratelimit uses. */
const SERVICES: ReadonlySet<string> = new Set(["", "ratelimit"]);

const SERVING = reply(ServingStatus.SERVING);
const NOT_SERVING = reply(ServingStatus.NOT_SERVING);
const SERVICE_UNKNOWN = reply(ServingStatus.SERVICE_UNKNOWN);

export function healthRoutes(health: Health): GrpcRoutes {
  const current = (): Uint8Array => (health.healthy ? SERVING : NOT_SERVING);

  function check(message: Uint8Array): Uint8Array {
    if (!SERVICES.has(serviceOf(message))) throw new GrpcError(GrpcCode.NOT_FOUND, "unknown service");
    return current();
  }

  function watch(message: Uint8Array, stream: ReplyStream): void {
    if (!SERVICES.has(serviceOf(message))) {
      // Not an error: by the protocol the service may appear later, and the call stays open for that.
      stream.send(SERVICE_UNKNOWN);
      return;
    }
    stream.send(current());
    stream.onClose(health.onChange(() => stream.send(current())));
  }

  return { unary: new Map([[CHECK, check]]), streaming: new Map([[WATCH, watch]]) };
}

function serviceOf(message: Uint8Array): string {
  try {
    return fromBinary(HealthCheckRequestSchema, message).service;
  } catch (cause) {
    throw new GrpcError(GrpcCode.INVALID_ARGUMENT, "malformed HealthCheckRequest", { cause });
  }
}

function reply(status: ServingStatus): Uint8Array {
  return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status }));
}
