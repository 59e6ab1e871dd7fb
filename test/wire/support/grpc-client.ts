// grpc-js as a foreign client: calls by path, with bytes for messages.
import {
  type CallOptions,
  Client,
  type ClientOptions,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";

export interface Outcome {
  readonly code: number;
  /** The message of the status. */
  readonly details: string;
  /** As UTF-8 text; `undefined` unless the code is 0. */
  readonly reply: string | undefined;
}

const asItIs = (bytes: Buffer): Buffer => bytes;

/** @param target `host:port` or `unix:path` */
export function grpcClient(target: string, options: ClientOptions = {}): Client {
  return new Client(target, credentials.createInsecure(), {
    // Each client has connections of its own.
    "grpc.use_local_subchannel_pool": 1,
    ...options,
  });
}

export function call(
  client: Client,
  path: string,
  message: string | Uint8Array,
  { metadata = new Metadata(), ...options }: CallOptions & { readonly metadata?: Metadata } = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const done = (error: ServiceError | null, reply?: Buffer): void => {
      if (error === null) resolve({ code: 0, details: "", reply: reply?.toString("utf8") });
      else resolve({ code: error.code, details: error.details, reply: undefined });
    };
    client.makeUnaryRequest(path, asItIs, asItIs, Buffer.from(message), metadata, options, done);
  });
}

export interface Stream {
  readonly messages: Buffer[];
  /** `undefined` while it lasts. */
  readonly end: () => { readonly code: number; readonly details: string } | undefined;
  readonly cancel: () => void;
}

export function openStream(client: Client, path: string, message: string | Uint8Array): Stream {
  const messages: Buffer[] = [];
  let end: { code: number; details: string } | undefined;
  const stream: ClientReadableStream<Buffer> = client.makeServerStreamRequest(
    path,
    asItIs,
    asItIs,
    Buffer.from(message),
  );
  stream.on("data", (reply: Buffer) => messages.push(reply));
  stream.on("status", ({ code, details }) => {
    end = { code, details };
  });
  stream.on("error", () => {});
  return { messages, end: () => end, cancel: () => stream.cancel() };
}
