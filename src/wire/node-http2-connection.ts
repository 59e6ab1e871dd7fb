// One connection of a client over node:http2, from its handshake to a goodbye that loses no call.
import { performServerHandshake, type ServerHttp2Session, type ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import { CONNECTION_WINDOW_BYTES, MAX_CONCURRENT_STREAMS, STREAM_WINDOW_BYTES } from "./bounds.ts";
import type { GrpcServerOptions } from "./door.ts";
import type { ByteBudget } from "./message-reader.ts";
import { type CallHost, serveCall, shuttingDown } from "./node-http2-call.ts";

/**
 * Largest header list that is taken in, so that a call over `maxHeaderListBytes` gets a status. Beyond it Node resets
 * the stream (ENHANCE_YOUR_CALM); it also ends the connection when one header has over 65,536 bytes or a header block
 * takes more than nine frames (at most 147,456 bytes), neither of which can be changed.
 */
const HEADER_LIST_BYTES = 262_144;
const HEADER_PAIRS = 8192;

/** What Node may hold for one connection outside of our own bounds, in megabytes. */
const SESSION_MEGABYTES = 64;

/**
 * By default Node cuts a client that resets more than 1,000 streams at over 33 a second. That is what a healthy Envoy
 * does when answers are slow: it gives up every call after 20 ms. So work and memory are bounded instead
 * (`MAX_RUNNING`), not the rate.
 */
const UNBOUNDED_RATE = 0xffff_ffff;

const SERVER_OPTIONS: ServerOptions & {
  streamResetBurst: number;
  streamResetRate: number;
  maxSessionRejectedStreams: number;
} = {
  settings: {
    enablePush: false,
    maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: HEADER_LIST_BYTES,
  },
  maxHeaderListPairs: HEADER_PAIRS,
  maxSessionMemory: SESSION_MEGABYTES,
  streamResetBurst: UNBOUNDED_RATE,
  streamResetRate: UNBOUNDED_RATE,
  // Streams that a client has reset before they could be refused count here, too.
  maxSessionRejectedStreams: UNBOUNDED_RATE,
};

/** GOAWAY with the largest possible stream id: no new calls please, though those on their way will be answered. */
const GOAWAY_SOON = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

export class NodeHttp2Connection {
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #host: CallHost;

  /** @param handshakeMs how long the client may take to begin speaking HTTP/2 */
  constructor(socket: Socket, options: GrpcServerOptions, budget: ByteBudget, handshakeMs: number) {
    this.#socket = socket;
    this.#host = { options, budget, replyStreams: new Set(), running: 0, draining: false };
    this.#session = performServerHandshake(socket, SERVER_OPTIONS);
    this.#session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    // Errors of a connection are its client's (garbage, a lost network); its end is what matters.
    this.#session.on("error", () => {});
    this.#session.on("stream", (stream, headers, _flags, rawHeaders) => {
      serveCall(this.#host, stream, headers, rawHeaders);
    });
    const handshake = setTimeout(() => socket.destroy(), handshakeMs);
    this.#session.once("remoteSettings", () => clearTimeout(handshake));
    socket.once("close", () => clearTimeout(handshake));
  }

  /**
   * Says goodbye in two steps (RFC 9113, section 6.8), so that calls on their way are answered: GOAWAY without a last
   * call, a round trip, then GOAWAY with the last one. The connection closes when its calls are over.
   */
  drain(): void {
    this.#host.draining = true;
    for (const replyStream of this.#host.replyStreams) replyStream.end(shuttingDown());
    // After Node's own immediates, which send the SETTINGS that must be the first frame of a new connection.
    setImmediate(() => {
      if (this.#session.destroyed || this.#session.closed) return;
      // Not `session.goaway()`: after that Node ignores new streams, which are just the ones that must not be lost.
      // Node always writes whole frames to the socket, so that ours goes between two of them.
      this.#socket.write(GOAWAY_SOON);
      this.#session.ping(() => this.#session.close());
    });
  }

  /** Ends the connection with all its calls. */
  cut(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }
}
