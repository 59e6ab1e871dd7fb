// Server-streaming calls: what is sent arrives, and every way to end is told to the handler once.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GrpcCode, GrpcError, type ReplyStream } from "../../../src/wire/door.ts";
import { eventually } from "../support/eventually.ts";
import { grpcClient, openStream } from "../support/grpc-client.ts";
import { framed, makeCall, openSession, startCall } from "../support/http2-call.ts";
import { callFrames, FrameType, RawConnection } from "../support/raw-connection.ts";
import {
  type CreateServer,
  ECHO,
  STREAM,
  STREAM_BUG,
  startTestService,
  type TestService,
  TWICE,
} from "../support/test-service.ts";

export function describeStreaming(transport: string, create: CreateServer): void {
  describe(`${transport}: streaming calls`, () => {
    let service: TestService;
    let client: ReturnType<typeof grpcClient>;

    beforeAll(async () => {
      service = await startTestService(create);
      client = grpcClient(`127.0.0.1:${service.port}`);
    });
    afterAll(async () => {
      client.close();
      await service.server.drain(0);
    });

    /** A call to `STREAM`, and both its ends. */
    async function open(): Promise<{ call: ReturnType<typeof openStream>; stream: ReplyStream; closes: () => number }> {
      const before = service.streams.length;
      const call = openStream(client, STREAM, "");
      await eventually(() => service.streams.length > before);
      const stream = service.streams.at(-1);
      if (stream === undefined) throw new Error("no stream");
      let closes = 0;
      stream.onClose(() => {
        closes += 1;
      });
      return { call, stream, closes: () => closes };
    }

    it("may end at once", async () => {
      const call = openStream(client, TWICE, "hello");
      await eventually(() => call.end() !== undefined);
      expect(call.end()).toEqual({ code: 0, details: "" });
      expect(call.messages.map(String)).toEqual(["hello", "hello"]);
    });

    it("send messages when the handler has them, and end when it says so", async () => {
      const { call, stream, closes } = await open();
      stream.send(Buffer.from("one"));
      await eventually(() => call.messages.length === 1);
      expect(closes()).toBe(0);
      stream.send(Buffer.from("two"));
      stream.end();
      await eventually(() => call.end() !== undefined && closes() === 1);
      expect(call.messages.map(String)).toEqual(["one", "two"]);
      expect(call.end()).toEqual({ code: 0, details: "" });
    });

    it("may end with an error, before any message and after", async () => {
      for (const texts of [[], ["one"]]) {
        const { call, stream, closes } = await open();
        for (const text of texts) stream.send(Buffer.from(text));
        stream.end(new GrpcError(GrpcCode.NOT_FOUND, "not hére"));
        await eventually(() => call.end() !== undefined && closes() === 1);
        expect(call.messages.map(String)).toEqual(texts);
        expect(call.end()).toEqual({ code: 5, details: "not hére" });
      }
    });

    it("may end without any message", async () => {
      const { call, stream } = await open();
      stream.end();
      await eventually(() => call.end() !== undefined);
      expect(call.end()).toEqual({ code: 0, details: "" });
    });

    it("tell the handler when the caller leaves, and ignore what it does then", async () => {
      const { call, stream, closes } = await open();
      call.cancel();
      await eventually(() => closes() === 1);
      stream.send(Buffer.from("too late"));
      stream.end(new GrpcError(GrpcCode.INTERNAL, "too late"));
      stream.end();
      let told = false;
      stream.onClose(() => {
        told = true;
      });
      expect(told).toBe(true);
      expect(closes()).toBe(1);
    });

    it("tell the handler when the connection is lost", async () => {
      const before = service.streams.length;
      const raw = await RawConnection.greet(service.port);
      raw.socket.write(callFrames(1, STREAM, framed("")));
      await eventually(() => service.streams.length > before);
      let closed = false;
      service.streams.at(-1)?.onClose(() => {
        closed = true;
      });
      raw.socket.resetAndDestroy();
      await eventually(() => closed);
    });

    it("keep the caller's deadline", async () => {
      const session = await openSession(service.port);
      const before = service.streams.length;
      const answer = await makeCall(session, STREAM, { headers: { "grpc-timeout": "20m" }, chunks: [framed("")] });
      expect(answer).toMatchObject({ httpStatus: 200, code: "4", details: "the deadline has passed" });
      expect(service.streams).toHaveLength(before + 1);
      session.close();
    });

    it("with a bug in the handler end with INTERNAL, and it is reported", async () => {
      service.bugs.length = 0;
      const call = openStream(client, STREAM_BUG, "");
      await eventually(() => call.end() !== undefined);
      expect(call.end()).toEqual({ code: 13, details: "internal error" });
      expect(service.bugs).toEqual([{ error: new TypeError("secret details"), path: STREAM_BUG }]);
    });

    it("need exactly one message, too", async () => {
      const session = await openSession(service.port);
      const answer = await makeCall(session, STREAM, { chunks: [framed("a"), framed("b")] });
      expect(answer).toMatchObject({ code: "13", details: "the call has more than one message" });
      session.close();
    });

    it("are cut when the caller does not read, and nothing else is", async () => {
      const before = service.streams.length;
      const session = await openSession(service.port);
      const call = startCall(session, STREAM, { chunks: [framed("")] });
      await eventually(() => service.streams.length > before);
      const stream = service.streams.at(-1);
      let closed = false;
      stream?.onClose(() => {
        closed = true;
      });
      // No one reads `call`: the window of 64 KiB fills, then what the server holds back for it.
      for (let sent = 0; sent < 40 && !closed; sent++) stream?.send(Buffer.alloc(16_384));
      await eventually(() => closed);
      call.resume();
      await eventually(() => call.closed);
      expect(call.rstCode).toBe(11);
      expect(await makeCall(session, ECHO, { chunks: [framed("a")] })).toMatchObject({ code: "0" });
      session.close();
    });

    it("share their connection with other calls", async () => {
      const raw = await RawConnection.greet(service.port);
      raw.socket.write(Buffer.concat([callFrames(1, STREAM, framed("")), callFrames(3, ECHO, framed("a"))]));
      await eventually(() => raw.isAnswered(3));
      service.streams.at(-1)?.send(Buffer.from("b"));
      await eventually(() => raw.of(FrameType.DATA).some((each) => each.streamId === 1));
      expect(raw.of(FrameType.DATA).map((each) => [each.streamId, each.payload])).toEqual([
        [3, framed("a")],
        [1, framed("b")],
      ]);
      raw.socket.destroy();
    });
  });
}
