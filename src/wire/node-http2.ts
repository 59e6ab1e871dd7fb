// The conservative transport: gRPC over HTTP/2 without TLS on Node's own node:http2.
// Calls are served in node-http2-call.ts; this file opens the listener and closes everything again.
import { createServer, type Socket } from "node:net";
import { HANDSHAKE_MS, KEEP_ALIVE_MS, MAX_UNFINISHED_MESSAGES } from "./bounds.ts";
import type { GrpcServer, GrpcServerOptions, ListenAddress } from "./door.ts";
import { listen } from "./listen.ts";
import type { ByteBudget } from "./message-reader.ts";
import { NodeHttp2Connection } from "./node-http2-connection.ts";

export function createNodeHttp2Server(
  options: GrpcServerOptions,
  { handshakeMs = HANDSHAKE_MS }: { readonly handshakeMs?: number } = {},
): GrpcServer {
  const budget: ByteBudget = { maxBytes: MAX_UNFINISHED_MESSAGES * options.limits.maxMessageBytes, usedBytes: 0 };
  const connections = new Set<NodeHttp2Connection>();
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS });
  let drained: Promise<void> | undefined;

  server.on("connection", (socket: Socket) => {
    const connection = new NodeHttp2Connection(socket, options, budget, handshakeMs);
    connections.add(connection);
    socket.once("close", () => connections.delete(connection));
  });

  async function drain(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      // Also when it never listened; the callback's error says just that.
      server.close(() => resolve());
    });
    for (const connection of connections) connection.drain();
    const cut = setTimeout(() => {
      for (const connection of connections) connection.cut();
    }, graceMs);
    await closed;
    clearTimeout(cut);
  }

  return {
    listen: (address: ListenAddress) => listen(server, address),
    drain: (graceMs: number) => {
      drained ??= drain(graceMs);
      return drained;
    },
  };
}
