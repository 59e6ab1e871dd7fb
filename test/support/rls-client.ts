// A foreign client of weir's gRPC port: grpc-js, with messages as proto3 JSON or as raw bytes.
import { create, fromBinary, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { RateLimitRequestSchema, RateLimitResponseSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "../../src/gen/grpc/health/v1/health_pb.js";

/** A RateLimitResponse in proto3 JSON, as far as the tests read it. */
export interface RlsAnswer {
  readonly overallCode: string;
  readonly statuses: readonly RlsStatus[];
  readonly responseHeadersToAdd?: readonly { readonly key: string; readonly value: string }[];
  readonly dynamicMetadata?: JsonValue;
}

export interface RlsStatus {
  readonly code: string;
  readonly currentLimit?: { readonly requestsPerUnit?: number; readonly unit?: string; readonly name?: string };
  readonly limitRemaining?: number;
  /** Like `12s`. */
  readonly durationUntilReset?: string;
}

export interface RlsClient {
  /** A request and its answer in proto3 JSON; rejects with a ServiceError. */
  shouldRateLimit(request: JsonValue): Promise<RlsAnswer>;
  /** One message with raw bytes; rejects with a ServiceError. */
  send(message: Uint8Array): Promise<Uint8Array>;
  /** The health of a service, like `SERVING`; rejects with a ServiceError. */
  health(service: string): Promise<string>;
  /** Follows the health of a service until it is cancelled or ends. */
  watchHealth(service: string): HealthWatch;
  close(): void;
}

export interface HealthWatch {
  /** Every state so far. */
  readonly states: readonly string[];
  /** Resolves when the stream is over, with the code of its status. */
  readonly end: Promise<number>;
  cancel(): void;
}

const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";
/** Longest wait for an answer, milliseconds. */
const DEADLINE_MS = 10_000;

const asIs = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

export function connectRls(port: number): RlsClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    // A connection of its own for each client, and tries again soon when a server comes back on the same port.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 20,
    "grpc.max_reconnect_backoff_ms": 50,
  });

  const call = (path: string, message: Uint8Array): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, reply?: Uint8Array): void =>
        error === null && reply !== undefined ? resolve(reply) : reject(error);
      client.makeUnaryRequest(path, asIs, asIs, message, new Metadata(), { deadline: Date.now() + DEADLINE_MS }, done);
    });

  const send = (message: Uint8Array): Promise<Uint8Array> => call(SHOULD_RATE_LIMIT, message);

  const shouldRateLimit = async (request: JsonValue): Promise<RlsAnswer> => {
    const reply = await send(toBinary(RateLimitRequestSchema, fromJson(RateLimitRequestSchema, request)));
    return toJson(RateLimitResponseSchema, fromBinary(RateLimitResponseSchema, reply)) as unknown as RlsAnswer;
  };

  return {
    shouldRateLimit,
    send,
    health: async (service) => stateName(await call(CHECK, healthRequest(service))),
    watchHealth: (service) =>
      followHealth(client.makeServerStreamRequest(WATCH, asIs, asIs, healthRequest(service), new Metadata())),
    close: () => client.close(),
  };
}

function healthRequest(service: string): Uint8Array {
  return toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
}

function stateName(reply: Uint8Array): string {
  return HealthCheckResponse_ServingStatus[fromBinary(HealthCheckResponseSchema, reply).status];
}

function followHealth(stream: ClientReadableStream<Uint8Array>): HealthWatch {
  const states: string[] = [];
  stream.on("data", (reply: Uint8Array) => states.push(stateName(reply)));
  stream.on("error", () => {}); // the status tells
  const end = new Promise<number>((resolve) => stream.on("status", ({ code }) => resolve(code)));
  return { states, end, cancel: () => stream.cancel() };
}
