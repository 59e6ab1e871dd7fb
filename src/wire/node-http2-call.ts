// One call on a stream of node:http2: checks its head, reads its message, keeps its deadline and runs its handler.
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { MAX_RUNNING } from "./bounds.ts";
import { toGrpcError } from "./call-error.ts";
import { GrpcCode, GrpcError, type GrpcServerOptions, type StreamHandler, type UnaryHandler } from "./door.ts";
import { type ByteBudget, MessageReader } from "./message-reader.ts";
import { NodeReplyStream, sendRefusal, sendReply } from "./node-http2-reply.ts";
import { checkHead, HEADER_OVERHEAD_BYTES, unknownMethod } from "./request-head.ts";

/** What the calls of one connection share. */
export interface CallHost {
  readonly options: GrpcServerOptions;
  /** Shared by all connections of the server. */
  readonly budget: ByteBudget;
  /** Streaming calls that are under way. */
  readonly replyStreams: Set<NodeReplyStream>;
  /** Handlers whose promise is pending; those of calls that the client gave up included. */
  running: number;
  draining: boolean;
}

/** Longest time that a timer can wait for; a deadline beyond it never passes. */
const MAX_TIMER_MS = 0x7fff_ffff;

export function serveCall(
  host: CallHost,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): void {
  // Whatever goes wrong with a stream is told by `close` as well, and is never more than the end of the call.
  stream.on("error", () => {});
  const { limits, routes } = host.options;
  const timeoutMs = checkHead(
    {
      method: headers[":method"],
      contentType: headers["content-type"],
      encoding: single(headers["grpc-encoding"]),
      timeout: single(headers["grpc-timeout"]),
      headerListBytes: headerListBytes(rawHeaders),
    },
    limits,
  );
  if (typeof timeoutMs !== "number") {
    sendRefusal(stream, timeoutMs);
    return;
  }
  const path = headers[":path"] ?? "";
  const unary = routes.unary.get(path);
  const streaming = routes.streaming.get(path);
  if (unary !== undefined) {
    new IncomingCall(host, stream, path, timeoutMs).read((call, message, leftMs) =>
      call.answer(unary, message, leftMs),
    );
  } else if (streaming !== undefined) {
    new IncomingCall(host, stream, path, timeoutMs).read((call, message) => call.open(streaming, message));
  } else {
    sendRefusal(stream, unknownMethod(path));
  }
}

/** How streaming calls end when the server stops. */
export function shuttingDown(): GrpcError {
  return new GrpcError(GrpcCode.UNAVAILABLE, "the server is shutting down");
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}

function headerListBytes(rawHeaders: readonly string[]): number {
  let bytes = (rawHeaders.length / 2) * HEADER_OVERHEAD_BYTES;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

class IncomingCall {
  readonly #host: CallHost;
  readonly #stream: ServerHttp2Stream;
  readonly #path: string;
  readonly #reader: MessageReader;
  /** On the clock of `performance.now()`. */
  readonly #deadlineMs: number;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Set while a streaming call is under way. */
  #replyStream: NodeReplyStream | undefined;
  /** The status is decided; nothing more is read or answered. */
  #over = false;

  constructor(host: CallHost, stream: ServerHttp2Stream, path: string, timeoutMs: number) {
    this.#host = host;
    this.#stream = stream;
    this.#path = path;
    this.#reader = new MessageReader(host.options.limits.maxMessageBytes, host.budget);
    this.#deadlineMs = performance.now() + timeoutMs;
    if (timeoutMs <= MAX_TIMER_MS) this.#timer = setTimeout(() => this.#expire(), Math.ceil(timeoutMs));
    stream.once("close", () => this.#finish());
  }

  /** Collects the message and hands it on once the caller has sent everything. */
  read(then: (call: IncomingCall, message: Uint8Array, timeLeftMs: number) => void): void {
    this.#stream.on("data", (chunk: Uint8Array) => {
      if (this.#over) return;
      const problem = this.#reader.push(chunk);
      if (problem !== undefined) this.#fail(problem);
    });
    this.#stream.once("end", () => {
      // Node ends the data of a call that was reset, too.
      if (this.#over || this.#stream.aborted || this.#stream.destroyed) return;
      const message = this.#reader.end();
      const timeLeftMs = this.#deadlineMs - performance.now();
      if (message instanceof GrpcError) this.#fail(message);
      else if (timeLeftMs <= 0) this.#expire();
      else then(this, message, timeLeftMs);
    });
  }

  answer(handler: UnaryHandler, message: Uint8Array, timeoutMs: number): void {
    if (this.#host.running >= MAX_RUNNING) {
      this.#fail(new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, "too many calls are waiting"));
      return;
    }
    try {
      const reply = handler(message, { timeoutMs });
      if (reply instanceof Uint8Array) this.#reply(reply);
      else this.#wait(reply);
    } catch (error) {
      this.#failWith(error);
    } finally {
      this.#reader.release();
    }
  }

  open(handler: StreamHandler, message: Uint8Array): void {
    if (this.#host.draining) {
      this.#fail(shuttingDown());
      return;
    }
    const replyStream = new NodeReplyStream(this.#stream);
    this.#replyStream = replyStream;
    this.#host.replyStreams.add(replyStream);
    try {
      handler(message, replyStream);
    } catch (error) {
      this.#failWith(error);
    } finally {
      this.#reader.release();
    }
  }

  #wait(reply: Promise<Uint8Array>): void {
    this.#host.running += 1;
    reply
      .finally(() => {
        this.#host.running -= 1;
      })
      .then((message) => this.#reply(message))
      .catch((error: unknown) => this.#failWith(error));
  }

  #expire(): void {
    this.#fail(new GrpcError(GrpcCode.DEADLINE_EXCEEDED, "the deadline has passed"));
  }

  #failWith(thrown: unknown): void {
    this.#fail(toGrpcError(thrown, this.#path, this.#host.options.onBug));
  }

  #fail(error: GrpcError): void {
    if (this.#over) return;
    if (this.#replyStream === undefined) sendRefusal(this.#stream, { httpStatus: 200, error });
    else this.#replyStream.end(error);
    this.#finish();
  }

  #reply(message: Uint8Array): void {
    if (this.#over) return;
    sendReply(this.#stream, message);
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#reader.release();
    if (this.#replyStream !== undefined) this.#host.replyStreams.delete(this.#replyStream);
  }
}
