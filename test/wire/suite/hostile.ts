// Bytes that are no HTTP/2, and HTTP/2 that breaks its rules: that connection ends, everybody else's goes on.
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { framed } from "../support/http2-call.ts";
import {
  callFrames,
  END_HEADERS,
  FrameType,
  frame,
  grpcHeaders,
  headerBlock,
  PREFACE,
  RawConnection,
} from "../support/raw-connection.ts";
import { type CreateServer, ECHO, startTestService, type TestService } from "../support/test-service.ts";

export function describeHostile(transport: string, create: CreateServer): void {
  describe(`${transport}: hostile bytes`, () => {
    let service: TestService;
    let neighbour: RawConnection;
    let streamId = 1;

    beforeAll(async () => {
      service = await startTestService(create);
      neighbour = await RawConnection.greet(service.port);
    });
    afterAll(async () => {
      neighbour.socket.destroy();
      await service.server.drain(0);
      expect(service.bugs).toEqual([]);
    });
    beforeEach(() => {
      service.received.length = 0;
    });
    afterEach(async () => {
      neighbour.socket.write(callFrames(streamId, ECHO, framed("neighbour")));
      await eventually(() => neighbour.isAnswered(streamId));
      streamId += 2;
      expect(service.received).toEqual(["neighbour"]);
    });

    it.each([
      ["HTTP/1.1", Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n")],
      ["a TLS hello", Buffer.from("16030100c8010000c40303", "hex")],
      ["zeros", Buffer.alloc(100)],
      ["a preface that is wrong at its end", Buffer.concat([PREFACE.subarray(0, 23), Buffer.from("x")])],
      ["a preface without SETTINGS", Buffer.concat([PREFACE, callFrames(1, ECHO, framed("a"))])],
    ])("%s instead of the preface", async (_name, bytes) => {
      const raw = await RawConnection.open(service.port);
      raw.socket.write(bytes);
      raw.socket.once("end", () => raw.socket.end());
      await eventually(() => raw.closed);
    });

    it.each([
      ["a frame that is too long", frame(FrameType.DATA, 0, 1, Buffer.alloc(16_385))],
      ["data on no stream", frame(FrameType.DATA, 0, 0, Buffer.alloc(1))],
      ["an even stream", callFrames(2, ECHO, framed("a"))],
      ["headers that are no HPACK", frame(FrameType.HEADERS, END_HEADERS, 1, Buffer.alloc(10, 0xff))],
      ["a continuation of nothing", frame(FrameType.CONTINUATION, END_HEADERS, 1, Buffer.alloc(1))],
      [
        "another frame within the headers",
        Buffer.concat([
          frame(FrameType.HEADERS, 0, 1, headerBlock(grpcHeaders(ECHO))),
          frame(FrameType.PING, 0, 0, Buffer.alloc(8)),
        ]),
      ],
      ["a window that overflows", frame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.of(0x7f, 0xff, 0xff, 0xff))],
      ["a PING of seven bytes", frame(FrameType.PING, 0, 0, Buffer.alloc(7))],
    ])("%s", async (_name, bytes) => {
      const raw = await RawConnection.greet(service.port);
      raw.socket.write(bytes);
      raw.socket.once("end", () => raw.socket.end());
      await eventually(() => raw.closed);
      expect(raw.of(FrameType.GOAWAY).length).toBeGreaterThan(0);
    });

    it("random bytes, before and after the preface", async () => {
      for (let round = 0; round < 30; round++) {
        const raw = round % 2 === 0 ? await RawConnection.open(service.port) : await RawConnection.greet(service.port);
        raw.socket.write(randomBytes(200));
        raw.socket.end();
        await eventually(() => raw.closed);
      }
    });

    it.each([
      ["upper case in a name", [["Name", "x"]]],
      ["a connection header", [["connection", "close"]]],
      ["a second path", [[":path", ECHO]]],
    ])("malformed headers (%s) end their call alone", async (_name, extra) => {
      const raw = await RawConnection.greet(service.port);
      const block = headerBlock([...grpcHeaders(ECHO), ...(extra as [string, string][])]);
      raw.socket.write(frame(FrameType.HEADERS, END_HEADERS, 1, block));
      await eventually(() => raw.of(FrameType.RST_STREAM).length === 1);
      raw.socket.write(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
      await eventually(() => raw.of(FrameType.PING).length === 1);
      expect(raw.closed).toBe(false);
      raw.socket.destroy();
    });
  });
}
