// Calls made by hand on node:http2, for what a gRPC client would never send.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";

export interface Answer {
  readonly httpStatus: number;
  /** `grpc-status` of the trailers, or of the headers where there are none. */
  readonly code: string | undefined;
  /** `grpc-message` as it stands. */
  readonly details: string | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly data: Buffer;
  /** How the server closed the stream; 0 is no error. */
  readonly resetCode: number;
}

export async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`, { maxSendHeaderBlockLength: 1 << 20 });
  session.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    session.once("remoteSettings", () => resolve());
    session.once("close", () => reject(new Error("closed before the settings came")));
  });
  return session;
}

export interface CallParts {
  /** Added to those of a plain gRPC call, or instead of them. */
  readonly headers?: OutgoingHttpHeaders;
  readonly method?: string;
  /** Each is sent in a frame of its own. */
  readonly chunks?: readonly Uint8Array[];
  /** Whether the client says that it has sent everything; true by default. */
  readonly end?: boolean;
}

export function startCall(session: ClientHttp2Session, path: string, parts: CallParts = {}): ClientHttp2Stream {
  const { headers = {}, method = "POST", chunks = [], end = true } = parts;
  const stream = session.request(
    {
      ":method": method,
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    },
    { endStream: end && chunks.length === 0 },
  );
  stream.on("error", () => {});
  for (const chunk of chunks) stream.write(chunk);
  if (end && chunks.length > 0) stream.end();
  return stream;
}

/** Resolves once the stream is closed. */
export function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let headers: Record<string, unknown> = {};
  const data: Buffer[] = [];
  stream.on("response", (received) => {
    headers = { ...headers, ...received };
  });
  stream.on("trailers", (received) => {
    headers = { ...headers, ...received };
  });
  stream.on("data", (chunk: Buffer) => data.push(chunk));
  return new Promise((resolve) => {
    stream.once("close", () =>
      resolve({
        httpStatus: Number(headers[":status"]),
        code: text(headers["grpc-status"]),
        details: text(headers["grpc-message"]),
        headers,
        data: Buffer.concat(data),
        resetCode: stream.rstCode ?? 0,
      }),
    );
  });
}

export function makeCall(session: ClientHttp2Session, path: string, parts: CallParts = {}): Promise<Answer> {
  return answerOf(startCall(session, path, parts));
}

function text(value: unknown): string | undefined {
  return value === undefined ? undefined : String(value);
}

/** A length-prefixed message. */
export function framed(message: string | Uint8Array, flag = 0): Buffer {
  const bytes = Buffer.from(message);
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}
