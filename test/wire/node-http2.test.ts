// The transport on node:http2 against everything that a transport must do.
import { describe, expect, it } from "vitest";
import { createNodeHttp2Server } from "../../src/wire/node-http2.ts";
import { describeCalls } from "./suite/calls.ts";
import { describeDrain } from "./suite/drain.ts";
import { describeHostile } from "./suite/hostile.ts";
import { describeListening } from "./suite/listening.ts";
import { describeOddCalls } from "./suite/odd-calls.ts";
import { describeResets } from "./suite/resets.ts";
import { describeStreaming } from "./suite/streaming.ts";
import { eventually } from "./support/eventually.ts";
import { FrameType, RawConnection } from "./support/raw-connection.ts";
import { startTestService } from "./support/test-service.ts";

const transport = "node:http2";
describeCalls(transport, createNodeHttp2Server);
describeOddCalls(transport, createNodeHttp2Server);
describeResets(transport, createNodeHttp2Server);
describeStreaming(transport, createNodeHttp2Server);
describeDrain(transport, createNodeHttp2Server);
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
});
