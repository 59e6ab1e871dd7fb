// Unary calls as a gRPC client makes them.
import { Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { call, grpcClient } from "../support/grpc-client.ts";
import {
  BUG,
  BUG_LATER,
  type CreateServer,
  ECHO,
  LATER,
  LIMITS,
  STATUS,
  startTestService,
  type TestService,
} from "../support/test-service.ts";

export function describeCalls(transport: string, create: CreateServer): void {
  describe(`${transport}: unary calls of grpc-js`, () => {
    let service: TestService;
    let client: ReturnType<typeof grpcClient>;

    beforeAll(async () => {
      service = await startTestService(create);
      client = grpcClient(`127.0.0.1:${service.port}`, {
        "grpc.max_send_message_length": -1,
        "grpc.max_receive_message_length": -1,
      });
    });
    afterAll(async () => {
      client.close();
      await service.server.drain(0);
    });

    it("are answered, at once and later", async () => {
      expect(await call(client, ECHO, "now")).toEqual({ code: 0, details: "", reply: "now" });
      const later = call(client, LATER, "later");
      await eventually(() => service.waiting.length === 1);
      service.waiting.shift()?.();
      expect(await later).toEqual({ code: 0, details: "", reply: "later" });
    });

    it("may have an empty message and get an empty reply", async () => {
      expect(await call(client, ECHO, "")).toEqual({ code: 0, details: "", reply: "" });
    });

    it("get their own reply when a thousand run at once", async () => {
      const texts = Array.from({ length: 1000 }, (_, index) => `call ${index}`);
      const outcomes = await Promise.all(texts.map((text) => call(client, ECHO, text)));
      expect(outcomes.map((outcome) => outcome.reply)).toEqual(texts);
    });

    it("may have a message of the largest size and no larger one", async () => {
      const largest = Buffer.alloc(LIMITS.maxMessageBytes, "a");
      const { code, reply } = await call(client, ECHO, largest);
      expect(code).toBe(0);
      expect(reply === largest.toString()).toBe(true);
      expect(await call(client, ECHO, Buffer.alloc(LIMITS.maxMessageBytes + 1))).toEqual({
        code: 8,
        details: "the message is larger than 4194304 bytes",
        reply: undefined,
      });
      expect(await call(client, ECHO, "after")).toMatchObject({ code: 0, reply: "after" });
    });

    it("end with the status that the handler throws, whatever its text", async () => {
      for (const text of ["plain text", "100 % ünïcode\nline 2\t🦀", " spaces ", ""]) {
        expect(await call(client, STATUS, `3 ${text}`)).toEqual({ code: 3, details: text, reply: undefined });
      }
      expect(await call(client, STATUS, "14 gone")).toMatchObject({ code: 14, details: "gone" });
    });

    it("end with INTERNAL and no details when the handler has a bug, which is reported once", async () => {
      for (const path of [BUG, BUG_LATER]) {
        service.bugs.length = 0;
        expect(await call(client, path, "")).toEqual({ code: 13, details: "internal error", reply: undefined });
        expect(service.bugs).toEqual([{ error: new TypeError("secret details"), path }]);
      }
    });

    it("end with UNIMPLEMENTED when nothing is served at the path", async () => {
      expect(await call(client, "/test.Service/Other", "")).toEqual({
        code: 12,
        details: "unknown method /test.Service/Other",
        reply: undefined,
      });
    });

    it("tell the handler how long the caller waits", async () => {
      service.timeouts.length = 0;
      await call(client, ECHO, "");
      await call(client, ECHO, "", { deadline: Date.now() + 60_000 });
      const [none, minute = 0] = service.timeouts;
      expect(none).toBe(Number.POSITIVE_INFINITY);
      expect(minute).toBeGreaterThan(0);
      expect(minute).toBeLessThanOrEqual(60_000);
    });

    it("that are compressed end with UNIMPLEMENTED", async () => {
      const gzip = grpcClient(`127.0.0.1:${service.port}`, { "grpc.default_compression_algorithm": 2 });
      const outcome = await call(gzip, ECHO, "a".repeat(1000));
      gzip.close();
      expect(outcome).toMatchObject({ code: 12, details: "compressed messages are not supported" });
    });

    it("with too much metadata end with RESOURCE_EXHAUSTED, and the next call passes", async () => {
      const metadata = new Metadata();
      for (let index = 0; index < 20; index++) metadata.set(`m${index}`, "x".repeat(1000));
      expect(await call(client, ECHO, "", { metadata })).toMatchObject({
        code: 8,
        details: "the headers are larger than 16384 bytes",
      });
      expect(await call(client, ECHO, "after")).toMatchObject({ code: 0, reply: "after" });
    });
  });
}
