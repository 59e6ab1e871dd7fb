// The narrow door between the gRPC transports and what they serve: a method's message in, a reply's bytes out.
// Nothing in this folder knows of rate limits, and nothing outside of it knows of HTTP/2.

/** gRPC status codes (grpc/grpc, doc/statuscodes.md), those that weir uses. */
export const GrpcCode = {
  OK: 0,
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;
export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];

/** Ends a call with a status other than OK. The message is sent to the caller. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcCode;

  constructor(code: GrpcCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface Call {
  /** Milliseconds from now until the caller gives up (`grpc-timeout`), above 0; `Infinity` when it did not say. */
  readonly timeoutMs: number;
}

/**
 * Answers one message with one message, at once or by a promise. A thrown GrpcError becomes the call's status; anything
 * else is our own bug: it is reported once and answered INTERNAL. `message` is only valid until the handler returns.
 */
export type UnaryHandler = (message: Uint8Array, call: Call) => Uint8Array | Promise<Uint8Array>;

/** The sending side of a server-streaming call. */
export interface ReplyStream {
  /** Sends a message; does nothing once the call is over. */
  send(message: Uint8Array): void;
  /** Ends the call, with OK unless an error is given; does nothing once it is over. */
  end(error?: GrpcError): void;
  /** Called once when the call is over for any reason: ended, cancelled, connection lost. */
  onClose(listener: () => void): void;
}

export type StreamHandler = (message: Uint8Array, stream: ReplyStream) => void;

/** What is served, by path (`/package.Service/Method`). Other paths are answered UNIMPLEMENTED. */
export interface GrpcRoutes {
  readonly unary: ReadonlyMap<string, UnaryHandler>;
  readonly streaming: ReadonlyMap<string, StreamHandler>;
}

/** Bounds on what a client may send or hold. Going over one fails the call with RESOURCE_EXHAUSTED. */
export interface WireLimits {
  /** Largest message, bytes. */
  readonly maxMessageBytes: number;
  /** Largest header list of a call, bytes as RFC 9113 section 6.5.2 counts them. */
  readonly maxHeaderListBytes: number;
}

export type ListenAddress =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** A gRPC server over HTTP/2. */
export interface GrpcServer {
  /** Opens the listener; resolves with the TCP port in use (0 for a Unix socket), rejects when it cannot. */
  listen(address: ListenAddress): Promise<number>;
  /**
   * Takes no new connections, tells clients to go away, lets running unary calls finish and ends streaming calls.
   * Resolves when every connection is closed; after `graceMs` what is left is cut.
   */
  drain(graceMs: number): Promise<void>;
}

export interface GrpcServerOptions {
  readonly routes: GrpcRoutes;
  readonly limits: WireLimits;
  /** Called with what a handler threw that was no GrpcError. */
  readonly onBug: (error: unknown, path: string) => void;
}
