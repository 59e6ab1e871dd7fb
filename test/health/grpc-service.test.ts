import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it } from "vitest";
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../src/gen/grpc/health/v1/health_pb.js";
import { healthRoutes } from "../../src/health/grpc-service.ts";
import { Health } from "../../src/health/health.ts";
import { GrpcCode, GrpcError, type ReplyStream } from "../../src/wire/door.ts";

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = ServingStatus;
const CALL = { timeoutMs: Number.POSITIVE_INFINITY };
const GARBAGE = Uint8Array.of(0xff);

function request(service: string): Uint8Array {
  return toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
}

function statusOf(message: Uint8Array): ServingStatus {
  return fromBinary(HealthCheckResponseSchema, message).status;
}

describe("the gRPC health service", () => {
  let health: Health;

  beforeEach(() => {
    health = new Health();
  });

  function check(message: Uint8Array): ServingStatus {
    const answer = healthRoutes(health).unary.get("/grpc.health.v1.Health/Check")?.(message, CALL);
    if (!(answer instanceof Uint8Array)) throw new Error("not answered at once");
    return statusOf(answer);
  }

  /** A watching call: what it was sent, whether it was ended, and a way to leave. */
  function watch(message: Uint8Array): { sent: ServingStatus[]; ended: () => boolean; leave: () => void } {
    const sent: ServingStatus[] = [];
    const closers: (() => void)[] = [];
    let ended = false;
    const stream: ReplyStream = {
      send: (reply) => sent.push(statusOf(reply)),
      end: () => {
        ended = true;
      },
      onClose: (listener) => closers.push(listener),
    };
    healthRoutes(health).streaming.get("/grpc.health.v1.Health/Watch")?.(message, stream);
    return {
      sent,
      ended: () => ended,
      leave: () => {
        for (const close of closers) close();
      },
    };
  }

  it.each(["", "ratelimit"])("checks %j by the health of the server", (service) => {
    expect(check(request(service))).toBe(SERVING);
    health.report("redis", false);
    expect(check(request(service))).toBe(NOT_SERVING);
  });

  it("does not find other services", () => {
    expect(() => check(request("other"))).toThrow(new GrpcError(GrpcCode.NOT_FOUND, "unknown service"));
  });

  it.each(["", "ratelimit"])("watches %j: the status at once and then each change", (service) => {
    const call = watch(request(service));
    expect(call.sent).toEqual([SERVING]);
    health.report("redis", true);
    health.report("config", false);
    health.report("redis", false);
    health.report("redis", true);
    expect(call.sent).toEqual([SERVING, NOT_SERVING]);
    health.report("config", true);
    expect(call.sent).toEqual([SERVING, NOT_SERVING, SERVING]);
    call.leave();
    health.report("config", false);
    expect(call.sent).toEqual([SERVING, NOT_SERVING, SERVING]);
    expect(call.ended()).toBe(false);
  });

  it("watches other services as unknown, and leaves the call open", () => {
    const call = watch(request("other"));
    health.report("redis", false);
    expect(call.sent).toEqual([SERVICE_UNKNOWN]);
    expect(call.ended()).toBe(false);
  });

  it("refuses what is no request", () => {
    const malformed = expect.objectContaining({ code: GrpcCode.INVALID_ARGUMENT });
    expect(() => check(GARBAGE)).toThrow(malformed);
    expect(() => watch(GARBAGE)).toThrow(malformed);
  });
});
