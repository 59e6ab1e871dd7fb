// grpc.health.v1.Health: Check and Watch for the names "" and "ratelimit", which both follow the server's health.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.js";
import { GrpcCode, GrpcError, type StreamHandler, type UnaryHandler } from "../wire/door.ts";
import type { Health } from "./health.ts";

const NAMES: readonly string[] = ["", "ratelimit"];

export function healthRoutes(health: Health): {
  unary: [string, UnaryHandler][];
  streaming: [string, StreamHandler][];
} {
  const current = (): Uint8Array => reply(health.healthy ? Status.SERVING : Status.NOT_SERVING);
  const check: UnaryHandler = (message) => {
    const { service } = fromBinary(HealthCheckRequestSchema, message);
    if (!NAMES.includes(service)) throw new GrpcError(GrpcCode.NOT_FOUND, "unknown service");
    return current();
  };
  const watch: StreamHandler = (message, stream) => {
    const { service } = fromBinary(HealthCheckRequestSchema, message);
    if (!NAMES.includes(service)) {
      stream.send(reply(Status.SERVICE_UNKNOWN));
      return;
    }
    stream.send(current());
    stream.onClose(health.onChange(() => stream.send(current())));
  };
  return {
    unary: [["/grpc.health.v1.Health/Check", check]],
    streaming: [["/grpc.health.v1.Health/Watch", watch]],
  };
}

function reply(status: Status): Uint8Array {
  return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status }));
}
