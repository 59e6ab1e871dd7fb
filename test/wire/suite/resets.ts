// Clients that give up, in every state of a call: always harmless, and what they leave behind is bounded.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MAX_RUNNING, MAX_UNFINISHED_MESSAGES } from "../../../src/wire/bounds.ts";
import { eventually } from "../support/eventually.ts";
import { framed, makeCall, openSession, startCall } from "../support/http2-call.ts";
import {
  callFrames,
  END_HEADERS,
  END_STREAM,
  FrameType,
  frame,
  grpcHeaders,
  headerBlock,
  RawConnection,
} from "../support/raw-connection.ts";
import { type CreateServer, ECHO, LATER, startTestService, type TestService } from "../support/test-service.ts";

const CANCEL = Buffer.of(0, 0, 0, 8);

export function describeResets(transport: string, create: CreateServer): void {
  describe(`${transport}: calls that are given up`, () => {
    let service: TestService;

    beforeAll(async () => {
      service = await startTestService(create, { maxMessageBytes: 100_000, maxHeaderListBytes: 16_384 });
    });
    afterAll(async () => {
      expect(service.bugs).toEqual([]);
      await service.server.drain(0);
    });
    beforeEach(() => {
      service.received.length = 0;
      service.waiting.length = 0;
    });

    it("do not reach the handler when they are reset before their end", async () => {
      const raw = await RawConnection.greet(service.port);
      const message = framed("given up");
      for (let sent = 0; sent <= message.length; sent++) {
        const streamId = 1 + 2 * sent;
        raw.socket.write(
          Buffer.concat([
            frame(FrameType.HEADERS, END_HEADERS, streamId, headerBlock(grpcHeaders(ECHO))),
            frame(FrameType.DATA, 0, streamId, message.subarray(0, sent)),
            // Not only CANCEL: a reset without an error is none the less no end of the message.
            frame(FrameType.RST_STREAM, 0, streamId, Buffer.of(0, 0, 0, sent % 2 === 0 ? 8 : 0)),
          ]),
        );
      }
      const last = 1 + 2 * (message.length + 1);
      raw.socket.write(callFrames(last, ECHO, framed("kept")));
      await eventually(() => raw.isAnswered(last));
      expect(service.received).toEqual(["kept"]);
      raw.socket.destroy();
    });

    it("may be answered by their handler later on", async () => {
      const session = await openSession(service.port);
      const stream = startCall(session, LATER, { chunks: [framed("a")] });
      await eventually(() => service.waiting.length === 1);
      stream.close(8);
      await new Promise((resolve) => stream.once("close", resolve));
      expect(await makeCall(session, ECHO, { chunks: [framed("b")] })).toMatchObject({ code: "0" });
      service.waiting[0]?.();
      expect(await makeCall(session, ECHO, { chunks: [framed("c")] })).toMatchObject({ code: "0" });
      session.close();
    });

    it("may end with their connection", async () => {
      const raw = await RawConnection.greet(service.port);
      raw.socket.write(
        Buffer.concat([
          callFrames(1, LATER, framed("a")),
          frame(FrameType.HEADERS, END_HEADERS, 3, headerBlock(grpcHeaders(ECHO))),
          frame(FrameType.DATA, 0, 3, framed("b").subarray(0, 4)),
        ]),
      );
      await eventually(() => service.waiting.length === 1);
      raw.socket.resetAndDestroy();
      await eventually(() => raw.closed);
      service.waiting[0]?.();
      const session = await openSession(service.port);
      expect(await makeCall(session, ECHO, { chunks: [framed("c")] })).toMatchObject({ code: "0" });
      session.close();
    });

    it("may be many, as from an Envoy that finds the answers slow; only the handlers that wait are bounded", async () => {
      const raw = await RawConnection.greet(service.port);
      let streamId = 1;
      for (let waiting = 512; waiting <= MAX_RUNNING; waiting += 512) {
        const calls: Buffer[] = [];
        const resets: Buffer[] = [];
        for (let call = 0; call < 512; call++, streamId += 2) {
          calls.push(callFrames(streamId, LATER, framed("slow")));
          resets.push(frame(FrameType.RST_STREAM, 0, streamId, CANCEL));
        }
        raw.socket.write(Buffer.concat(calls));
        await eventually(() => service.waiting.length === waiting);
        raw.socket.write(Buffer.concat(resets));
      }
      raw.socket.write(callFrames(streamId, LATER, framed("one too many")));
      await eventually(() => raw.isAnswered(streamId));
      expect(service.waiting).toHaveLength(MAX_RUNNING);
      // Once they are settled there is room again.
      for (const answer of service.waiting.splice(0)) answer();
      raw.socket.write(callFrames(streamId + 2, LATER, framed("again")));
      await eventually(() => service.waiting.length === 1);
      expect(raw.closed).toBe(false);
      raw.socket.destroy();
    });

    it("hold a bounded amount of memory while they are unfinished", async () => {
      const raw = await RawConnection.greet(service.port);
      const almost = framed(Buffer.alloc(100_000)).subarray(0, 100_004);
      const unfinished = (streamId: number): Buffer =>
        Buffer.concat([
          frame(FrameType.HEADERS, END_HEADERS, streamId, headerBlock(grpcHeaders(ECHO))),
          ...[0, 1, 2, 3, 4, 5, 6].map((piece) =>
            frame(FrameType.DATA, 0, streamId, almost.subarray(piece * 16_384, (piece + 1) * 16_384)),
          ),
        ]);
      await eventually(() => raw.connectionWindow() > (MAX_UNFINISHED_MESSAGES + 2) * 100_005);
      const held = Array.from({ length: MAX_UNFINISHED_MESSAGES }, (_, index) => 1 + 2 * index);
      for (const streamId of held) raw.socket.write(unfinished(streamId));
      const refused = 1 + 2 * MAX_UNFINISHED_MESSAGES;
      raw.socket.write(unfinished(refused));
      await eventually(() => raw.isAnswered(refused));
      expect(held.filter((streamId) => raw.isAnswered(streamId))).toEqual([]);
      // What comes in one piece needs no room.
      raw.socket.write(callFrames(refused + 2, ECHO, framed("small")));
      await eventually(() => raw.isAnswered(refused + 2));
      expect(service.received).toEqual(["small"]);
      // The first makes room for another.
      raw.socket.write(frame(FrameType.RST_STREAM, 0, 1, CANCEL));
      raw.socket.write(unfinished(refused + 4));
      raw.socket.write(frame(FrameType.DATA, END_STREAM, refused + 4, Buffer.of(0)));
      await eventually(() => service.received.length === 2);
      raw.socket.destroy();
    });
  });
}
