// The standard gRPC health service, for Envoy's health checks and Kubernetes probes.
//
// envoyproxy/ratelimit always answers SERVING for the empty name; here both names follow the health of the server, so
// that a probe that names no service sees it, too.
//
// Its two messages have one field each, so they are read and written by hand: the generated code for them would take as
// long to load as all the rest of weir.

import { ProtoReader, tagOf, WireType } from "../protobuf/proto-reader.ts";
import { ProtoWriter } from "../protobuf/proto-writer.ts";
import { GrpcCode, GrpcError, type GrpcRoutes, type ReplyStream } from "../wire/door.ts";
import type { Health } from "./health.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";

/** The server as a whole, and the name that envoyproxy/ratelimit uses. */
const SERVICES: ReadonlySet<string> = new Set(["", "ratelimit"]);

/** `HealthCheckRequest.service`. */
const SERVICE = tagOf(1, WireType.BYTES);

/** Answers by `HealthCheckResponse.ServingStatus`. */
const SERVING = reply(1);
const NOT_SERVING = reply(2);
const SERVICE_UNKNOWN = reply(3);

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

/** As bytes, which for the names that are known are their text. */
function serviceOf(message: Uint8Array): string {
  let service = "";
  try {
    const reader = new ProtoReader(message);
    while (reader.more()) {
      const tag = reader.tag();
      if (tag === SERVICE) service = reader.string();
      else reader.skip(tag);
    }
  } catch (cause) {
    throw new GrpcError(GrpcCode.INVALID_ARGUMENT, "malformed HealthCheckRequest", { cause });
  }
  return service;
}

function reply(status: number): Uint8Array {
  const writer = new ProtoWriter();
  writer.varint(1, status);
  return writer.finish();
}
