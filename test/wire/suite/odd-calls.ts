// Calls that no gRPC client makes: each ends alone, with the right status, and its connection lives on.
import type { ClientHttp2Session, OutgoingHttpHeaders } from "node:http2";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { type Answer, framed, makeCall, openSession } from "../support/http2-call.ts";
import { END_HEADERS, FrameType, frame, grpcHeaders, headerBlock, RawConnection } from "../support/raw-connection.ts";
import { type CreateServer, ECHO, LATER, LIMITS, startTestService, type TestService } from "../support/test-service.ts";

export function describeOddCalls(transport: string, create: CreateServer): void {
  describe(`${transport}: odd calls`, () => {
    let service: TestService;
    let session: ClientHttp2Session;

    beforeAll(async () => {
      service = await startTestService(create);
      session = await openSession(service.port);
    });
    afterAll(async () => {
      session.close();
      await service.server.drain(0);
    });
    beforeEach(() => {
      service.received.length = 0;
    });
    afterEach(async () => {
      const answer = await makeCall(session, ECHO, { chunks: [framed("still there")] });
      expect(answer).toMatchObject({ httpStatus: 200, code: "0", data: framed("still there") });
    });

    /** The status of an answer that has one and no message. */
    function statusOf(answer: Answer): unknown {
      expect(answer).toMatchObject({ httpStatus: 200, resetCode: 0 });
      expect(answer.headers["content-type"]).toBe("application/grpc");
      expect(answer.data).toHaveLength(0);
      return [Number(answer.code), answer.details];
    }

    it("a plain answer has exactly the headers that gRPC asks for", async () => {
      const { headers } = await makeCall(session, ECHO, { chunks: [framed("x")] });
      expect(Object.fromEntries(Object.entries(headers))).toEqual({
        ":status": 200,
        "content-type": "application/grpc",
        "grpc-status": "0",
      });
    });

    it("a message may be split at every byte", async () => {
      const bytes = framed("split me");
      for (let at = 1; at < bytes.length; at++) {
        const answer = await makeCall(session, ECHO, { chunks: [bytes.subarray(0, at), bytes.subarray(at)] });
        expect(answer).toMatchObject({ code: "0", data: bytes });
      }
      const chunks = [...bytes].map((byte) => Buffer.of(byte));
      expect(await makeCall(session, ECHO, { chunks })).toMatchObject({ code: "0", data: bytes });
    });

    it.each([
      ["no message", [Buffer.alloc(0)], 13, "the call has no message"],
      ["no data at all", [], 13, "the call has no message"],
      ["half a prefix", [framed("abc").subarray(0, 3)], 13, "the call ends within its message"],
      ["half a message", [framed("abc").subarray(0, 7)], 13, "the call ends within its message"],
      ["two messages", [framed("a"), framed("b")], 13, "the call has more than one message"],
      [
        "two messages in one frame",
        [Buffer.concat([framed("a"), framed("b")])],
        13,
        "the call has more than one message",
      ],
      ["bytes after an empty message", [framed(""), Buffer.of(0)], 13, "the call has more than one message"],
      ["a compressed message", [framed("a", 1)], 12, "compressed messages are not supported"],
      ["an unknown flag", [framed("a", 2)], 13, "unknown message flag 2"],
    ])("%s", async (_name, chunks, code, details) => {
      expect(statusOf(await makeCall(session, ECHO, { chunks }))).toEqual([code, details]);
      expect(service.received).toEqual([]);
    });

    it("a message that is announced too large is refused before it comes", async () => {
      const prefix = Buffer.of(0, 0xff, 0xff, 0xff, 0xff);
      const answer = await makeCall(session, ECHO, { chunks: [prefix], end: false });
      expect(statusOf(answer)).toEqual([8, "the message is larger than 4194304 bytes"]);
    });

    it("UNIMPLEMENTED says what would be understood", async () => {
      const answer = await makeCall(session, ECHO, { chunks: [framed("a", 1)] });
      expect(answer.headers["grpc-accept-encoding"]).toBe("identity");
    });

    it.each([
      [{ "grpc-encoding": "gzip" }, 12, "compressed messages are not supported"],
      [{ "grpc-timeout": "5" }, 13, "malformed grpc-timeout"],
      [{ "grpc-timeout": "-5m" }, 13, "malformed grpc-timeout"],
      [{ "grpc-timeout": "123456789m" }, 13, "malformed grpc-timeout"],
      [{ "grpc-timeout": "" }, 13, "malformed grpc-timeout"],
      [{ "grpc-timeout": ["5m", "5m"] }, 13, "malformed grpc-timeout"],
      [{ "grpc-timeout": "0m" }, 4, "the deadline has passed"],
    ])("the headers %j are refused", async (headers: OutgoingHttpHeaders, code: number, details: string) => {
      expect(statusOf(await makeCall(session, ECHO, { headers, chunks: [framed("a")] }))).toEqual([code, details]);
      expect(service.received).toEqual([]);
    });

    it("the encoding identity and the longest timeout are fine", async () => {
      const headers = { "grpc-encoding": "identity", "grpc-timeout": "99999999H" };
      service.timeouts.length = 0;
      expect(await makeCall(session, ECHO, { headers, chunks: [framed("a")] })).toMatchObject({ code: "0" });
      expect(Math.ceil(service.timeouts[0] ?? 0)).toBe(99_999_999 * 3_600_000);
    });

    it("a deadline that passes while the handler works ends the call", async () => {
      const headers = { "grpc-timeout": "20m" };
      const answer = await makeCall(session, LATER, { headers, chunks: [framed("a")] });
      expect(statusOf(answer)).toEqual([4, "the deadline has passed"]);
      service.waiting.shift()?.(); // too late, and harmless
    });

    it("a deadline that passes before the message is there ends the call", async () => {
      const headers = { "grpc-timeout": "20m" };
      for (const chunks of [[], [Buffer.of(0, 0)]]) {
        const answer = await makeCall(session, ECHO, { headers, chunks, end: false });
        expect(statusOf(answer)).toEqual([4, "the deadline has passed"]);
      }
      expect(service.received).toEqual([]);
    });

    it.each(["GET", "PUT", "HEAD"])("a %s is not allowed", async (method) => {
      const answer = await makeCall(session, ECHO, { method });
      expect(answer).toMatchObject({ httpStatus: 405, resetCode: 0 });
      expect(answer.headers["allow"]).toBe("POST");
    });

    it.each(["application/json", "application/grpc-web", "application/grpcx", "text/plain; application/grpc"])(
      "the content-type %s is not supported",
      async (type) => {
        const answer = await makeCall(session, ECHO, { headers: { "content-type": type }, chunks: [framed("a")] });
        expect(answer).toMatchObject({ httpStatus: 415, resetCode: 0 });
        expect(service.received).toEqual([]);
      },
    );

    it.each(["application/grpc+proto", "application/grpc;charset=utf-8", "Application/gRPC"])(
      "the content-type %s is fine",
      async (type) => {
        const answer = await makeCall(session, ECHO, { headers: { "content-type": type }, chunks: [framed("a")] });
        expect(answer).toMatchObject({ httpStatus: 200, code: "0" });
      },
    );

    it("a header list of exactly the largest size passes, one byte more does not", async () => {
      const plain: [string, string][] = [
        [":authority", `127.0.0.1:${service.port}`],
        [":method", "POST"],
        [":path", ECHO],
        [":scheme", "http"],
        ["content-type", "application/grpc"],
        ["te", "trailers"],
      ];
      const size = plain.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
      const room = LIMITS.maxHeaderListBytes - size - "filler".length - 32;
      const fits = await makeCall(session, ECHO, { headers: { filler: "x".repeat(room) }, chunks: [framed("a")] });
      expect(fits).toMatchObject({ code: "0" });
      const tooBig = await makeCall(session, ECHO, {
        headers: { filler: "x".repeat(room + 1) },
        chunks: [framed("a")],
      });
      expect(statusOf(tooBig)).toEqual([8, "the headers are larger than 16384 bytes"]);
    });

    it.each([
      ["one of 60,000 bytes", { a: "x".repeat(60_000) }],
      ["four of 30,000 bytes", Object.fromEntries([..."abcd"].map((name) => [name, "x".repeat(30_000)]))],
      ["2,000 small ones", Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`h${index}`, "x"]))],
    ])("too many header bytes (%s) are refused", async (_name, headers) => {
      const answer = await makeCall(session, ECHO, { headers, chunks: [framed("a")] });
      expect(statusOf(answer)).toEqual([8, "the headers are larger than 16384 bytes"]);
    });

    it("a client may go on sending what was refused, for more than the window of its connection", async () => {
      const raw = await RawConnection.greet(service.port);
      const head = headerBlock(grpcHeaders(ECHO));
      const piece = Buffer.alloc(16_384);
      let sent = 0;
      for (let streamId = 1; streamId < 60; streamId += 2) {
        const frames = [
          frame(FrameType.HEADERS, END_HEADERS, streamId, head),
          frame(FrameType.DATA, 0, streamId, Buffer.of(0, 0xff, 0xff, 0xff, 0xff)),
          ...Array.from({ length: 60 }, () => frame(FrameType.DATA, 0, streamId, piece)),
        ];
        sent += 5 + 60 * piece.length;
        await eventually(() => raw.connectionWindow() >= sent);
        raw.socket.write(Buffer.concat(frames));
        await eventually(() => raw.isAnswered(streamId));
      }
      expect(sent).toBeGreaterThan(16 << 20);
      expect(raw.closed).toBe(false);
      // The server asks for no more, without an error.
      expect(raw.of(FrameType.RST_STREAM).map((each) => each.payload.readUInt32BE(0))).toEqual(new Array(30).fill(0));
      raw.socket.destroy();
    });
  });
}
