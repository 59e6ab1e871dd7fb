// Answers on a stream of node:http2: the headers, messages and trailers of gRPC over HTTP/2.
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { MAX_UNSENT_BYTES } from "./bounds.ts";
import { GrpcCode, type GrpcError, type ReplyStream } from "./door.ts";
import { frameMessage } from "./frame-message.ts";
import { encodeGrpcMessage } from "./grpc-message.ts";
import type { Refusal } from "./request-head.ts";

const REPLY_HEADERS = { ":status": 200, "content-type": "application/grpc" } as const;
/** Node's types do not know `sendDate`. */
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const WITHOUT_MORE = { endStream: true, sendDate: false };
const OK_TRAILERS = { "grpc-status": "0" } as const;

/** Sends one message and the status OK. */
export function sendReply(stream: ServerHttp2Stream, message: Uint8Array): void {
  if (stream.destroyed || stream.closed) return;
  const framed = frameMessage(message);
  stream.respond(REPLY_HEADERS, WITH_TRAILERS);
  stream.once("wantTrailers", sendOkTrailers);
  stream.end(framed);
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  // The caller may have gone meanwhile.
  if (!this.destroyed && !this.closed) this.sendTrailers(OK_TRAILERS);
}

/** Sends nothing but a status. */
export function sendRefusal(stream: ServerHttp2Stream, refusal: Refusal): void {
  if (stream.destroyed || stream.closed) return;
  const headers: OutgoingHttpHeaders = {
    ...REPLY_HEADERS,
    ":status": refusal.httpStatus,
    ...statusTrailers(refusal.error),
  };
  if (refusal.httpStatus === 405) headers["allow"] = "POST";
  stream.respond(headers, WITHOUT_MORE);
  stopReading(stream);
}

/** Tells a caller that still sends that the answer is complete (RFC 9113, section 8.1); what it sends is thrown away. */
function stopReading(stream: ServerHttp2Stream): void {
  if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
}

function statusTrailers(error: GrpcError): OutgoingHttpHeaders {
  const trailers: OutgoingHttpHeaders = {
    "grpc-status": `${error.code}`,
    "grpc-message": encodeGrpcMessage(error.message),
  };
  // UNIMPLEMENTED asks the caller to look here for what would have been understood.
  if (error.code === GrpcCode.UNIMPLEMENTED) trailers["grpc-accept-encoding"] = "identity";
  return trailers;
}

/** The sending side of a streaming call. The headers go out with the first message. */
export class NodeReplyStream implements ReplyStream {
  readonly #stream: ServerHttp2Stream;
  #over = false;

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
    stream.once("close", () => {
      this.#over = true;
    });
  }

  send(message: Uint8Array): void {
    if (this.#over || this.#stream.closed) return;
    if (!this.#stream.headersSent) this.#stream.respond(REPLY_HEADERS, WITH_TRAILERS);
    this.#stream.write(frameMessage(message));
    if (this.#stream.writableLength > MAX_UNSENT_BYTES) {
      // A status would wait behind the messages. Callers read this code as RESOURCE_EXHAUSTED.
      this.#over = true;
      this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }

  end(error?: GrpcError): void {
    if (this.#over || this.#stream.closed) return;
    this.#over = true;
    const stream = this.#stream;
    if (!stream.headersSent && error !== undefined) {
      sendRefusal(stream, { httpStatus: 200, error });
      return;
    }
    if (!stream.headersSent) stream.respond(REPLY_HEADERS, WITH_TRAILERS);
    const trailers = error === undefined ? OK_TRAILERS : statusTrailers(error);
    stream.once("wantTrailers", () => {
      if (!stream.destroyed && !stream.closed) stream.sendTrailers(trailers);
    });
    stream.end();
  }

  onClose(listener: () => void): void {
    if (this.#stream.destroyed) listener();
    else this.#stream.once("close", listener);
  }
}
