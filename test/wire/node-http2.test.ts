// The transport on node:http2 against everything that a transport must do.
import { describe, expect, it } from "vitest";
import { createNodeHttp2Server } from "../../src/wire/node-http2.ts";
import { describeCalls } from "./suite/calls.ts";
import { describeDrain } from "./suite/drain.ts";
import { describeHealth } from "./suite/health.ts";
import { describeHostile } from "./suite/hostile.ts";
import { describeListening } from "./suite/listening.ts";
import { describeOddCalls } from "./suite/odd-calls.ts";
import { describeResets } from "./suite/resets.ts";
import { describeStreaming } from "./suite/streaming.ts";
import { eventually } from "./support/eventually.ts";
import { framed } from "./support/http2-call.ts";
import {
  callFrames,
  END_HEADERS,
  FrameType,
  frame,
  grpcHeaders,
  headerBlock,
  RawConnection,
} from "./support/raw-connection.ts";
import { ECHO, startTestService } from "./support/test-service.ts";

const transport = "node:http2";
const MAX_FRAME_BYTES = 16_384;

describeCalls(transport, createNodeHttp2Server);
describeOddCalls(transport, createNodeHttp2Server);
describeResets(transport, createNodeHttp2Server);
describeStreaming(transport, createNodeHttp2Server);
describeDrain(transport, createNodeHttp2Server);
describeHealth(transport, createNodeHttp2Server);
describeListening(transport, createNodeHttp2Server);
describeHostile(transport, createNodeHttp2Server);

describe(transport, () => {
  it("cuts a connection that does not begin to speak HTTP/2 in time", async () => {
    const service = await startTestService((options) => createNodeHttp2Server(options, { handshakeMs: 20 }));
    const silent = await RawConnection.open(service.port);
    await eventually(() => silent.closed);
    await service.server.drain(0);
  });

  it("announces its settings", async () => {
    const service = await startTestService(createNodeHttp2Server);
    const raw = await RawConnection.greet(service.port);
    const settings = new Map<number, number>();
    const payload = raw.of(FrameType.SETTINGS)[0]?.payload ?? Buffer.alloc(0);
    for (let at = 0; at < payload.length; at += 6) settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    expect(Object.fromEntries(settings)).toEqual({ 2: 0, 3: 1024, 4: 1 << 20, 6: 262_144 });
    expect(raw.connectionWindow()).toBe(16 << 20);
    raw.socket.destroy();
    await service.server.drain(0);
  });

  // What Node does beyond the sizes that get a status; node-http2-connection.ts tells operators of it.
  it.each([
    ["one header of 65,536 bytes", block([["a", "x".repeat(65_536)]]), "answered"],
    ["one header of 65,537 bytes", block([["a", "x".repeat(65_537)]]), "closed"],
    ["a block of nine frames", blockOf(9 * MAX_FRAME_BYTES), "answered"],
    ["a block of ten frames", blockOf(9 * MAX_FRAME_BYTES + 1), "closed"],
    // One header of 4,002 bytes is remembered and then named 70 times by one byte each.
    [
      "a list of 280,000 bytes in a small block",
      Buffer.concat([
        block([]),
        Buffer.of(0x40),
        block([["a", "x".repeat(4000)]]).subarray(-4005),
        Buffer.alloc(70, 0xbe),
      ]),
      "reset",
    ],
  ])("given %s the call is %s", async (_name, headers, outcome) => {
    const service = await startTestService(createNodeHttp2Server);
    const raw = await RawConnection.greet(service.port);
    raw.socket.once("end", () => raw.socket.end());
    raw.socket.write(Buffer.concat([headerFrames(1, headers), callFrames(3, ECHO, framed("next"))]));
    const resets = (): number[] => raw.of(FrameType.RST_STREAM).map((each) => each.payload.readUInt32BE(0));
    await eventually(() => raw.closed || raw.isAnswered(3));
    expect(raw.closed).toBe(outcome === "closed");
    expect(raw.isAnswered(1)).toBe(outcome === "answered");
    expect(resets()).toEqual(outcome === "answered" ? [0] : outcome === "reset" ? [11] : []);
    raw.socket.destroy();
    await service.server.drain(0);
  });
});

function block(extra: readonly (readonly [string, string])[]): Buffer {
  return headerBlock([...grpcHeaders(ECHO), ...extra]);
}

/** A header block of exactly that many bytes. */
function blockOf(bytes: number): Buffer {
  const extra: [string, string][] = ["a", "b", "c"].map((name) => [name, "x".repeat(40_000)]);
  const rest = bytes - block(extra).length - block([["d", "x".repeat(20_000)]]).length + block([]).length;
  return block([...extra, ["d", "x".repeat(20_000 + rest)]]);
}

function headerFrames(streamId: number, headers: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < headers.length; at += MAX_FRAME_BYTES) {
    const type = at === 0 ? FrameType.HEADERS : FrameType.CONTINUATION;
    const flags = at + MAX_FRAME_BYTES >= headers.length ? END_HEADERS : 0;
    frames.push(frame(type, flags, streamId, headers.subarray(at, at + MAX_FRAME_BYTES)));
  }
  return Buffer.concat(frames);
}
