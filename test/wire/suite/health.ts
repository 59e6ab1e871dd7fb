// The health service as a foreign client sees it through a transport.
import { create, toBinary } from "@bufbuild/protobuf";
import type { Client } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HealthCheckRequestSchema } from "../../../src/gen/grpc/health/v1/health_pb.js";
import { healthRoutes } from "../../../src/health/grpc-service.ts";
import { Health } from "../../../src/health/health.ts";
import type { GrpcServer } from "../../../src/wire/door.ts";
import { eventually } from "../support/eventually.ts";
import { call, grpcClient, openStream } from "../support/grpc-client.ts";
import { type CreateServer, LIMITS } from "../support/test-service.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";

/** The answers' bytes: field 1 with the status. */
const SERVING = "\x08\x01";
const NOT_SERVING = "\x08\x02";
const SERVICE_UNKNOWN = "\x08\x03";

function request(service: string): Uint8Array {
  return toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
}

export function describeHealth(transport: string, createServer: CreateServer): void {
  describe(`${transport}: health`, () => {
    const health = new Health();
    let server: GrpcServer;
    let client: Client;

    beforeAll(async () => {
      server = createServer({ routes: healthRoutes(health), limits: LIMITS, onBug: () => {} });
      client = grpcClient(`127.0.0.1:${await server.listen({ kind: "tcp", host: "127.0.0.1", port: 0 })}`);
    });
    afterAll(() => client.close());

    it("is checked, watched to the end, and not found for other services", async () => {
      expect(await call(client, CHECK, request("ratelimit"))).toMatchObject({ code: 0, reply: SERVING });
      expect(await call(client, CHECK, request("other"))).toMatchObject({ code: 5, details: "unknown service" });
      const watch = openStream(client, WATCH, request("ratelimit"));
      const other = openStream(client, WATCH, request("other"));
      await eventually(() => watch.messages.length === 1 && other.messages.length === 1);
      health.report("sigterm", false);
      await eventually(() => watch.messages.length === 2);
      expect(await call(client, CHECK, request(""))).toMatchObject({ code: 0, reply: NOT_SERVING });
      await server.drain(60_000);
      await eventually(() => watch.end() !== undefined && other.end() !== undefined);
      expect(watch.messages.map(String)).toEqual([SERVING, NOT_SERVING]);
      expect(other.messages.map(String)).toEqual([SERVICE_UNKNOWN]);
      expect(watch.end()).toEqual({ code: 14, details: "the server is shutting down" });
    });
  });
}
