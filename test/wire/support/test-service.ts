// A service to try transports with: it answers what it is sent, at once, later, never or with an error.
import {
  GrpcCode,
  GrpcError,
  type GrpcServer,
  type GrpcServerOptions,
  type ReplyStream,
  type StreamHandler,
  type UnaryHandler,
  type WireLimits,
} from "../../../src/wire/door.ts";

export type CreateServer = (options: GrpcServerOptions) => GrpcServer;

export const ECHO = "/test.Service/Echo";
/** Answers when the test lets it. */
export const LATER = "/test.Service/Later";
/** Ends with the status whose number and text the message holds: `8 too much`. */
export const STATUS = "/test.Service/Status";
export const BUG = "/test.Service/Bug";
export const BUG_LATER = "/test.Service/BugLater";
/** A streaming call that the test goes on with. */
export const STREAM = "/test.Service/Stream";
/** A streaming call that answers the message twice and ends. */
export const TWICE = "/test.Service/Twice";
export const STREAM_BUG = "/test.Service/StreamBug";

export interface TestService {
  readonly server: GrpcServer;
  readonly port: number;
  /** Messages of the unary calls that reached a handler, as text. */
  readonly received: string[];
  /** `timeoutMs` of those calls. */
  readonly timeouts: number[];
  /** Calls to `LATER` that wait, oldest first; calling one answers it. */
  readonly waiting: (() => void)[];
  /** Streaming calls to `STREAM` so far. */
  readonly streams: ReplyStream[];
  readonly bugs: { readonly error: unknown; readonly path: string }[];
}

export const LIMITS: WireLimits = { maxMessageBytes: 4 << 20, maxHeaderListBytes: 16 << 10 };

/** Listens on a free port of 127.0.0.1. */
export async function startTestService(
  create: CreateServer,
  limits: WireLimits = LIMITS,
  address = { kind: "tcp" as const, host: "127.0.0.1", port: 0 },
): Promise<TestService> {
  const received: string[] = [];
  const timeouts: number[] = [];
  const waiting: (() => void)[] = [];
  const streams: ReplyStream[] = [];
  const bugs: { error: unknown; path: string }[] = [];
  const server = create({
    limits,
    onBug: (error, path) => bugs.push({ error, path }),
    routes: {
      unary: new Map<string, UnaryHandler>([
        [
          ECHO,
          (message, call) => {
            received.push(textOf(message));
            timeouts.push(call.timeoutMs);
            return message;
          },
        ],
        [
          LATER,
          (message, call) => {
            received.push(textOf(message));
            timeouts.push(call.timeoutMs);
            const copy = Uint8Array.from(message);
            return new Promise<Uint8Array>((resolve) => {
              waiting.push(() => resolve(copy));
            });
          },
        ],
        [
          STATUS,
          (message) => {
            const [, code, text] = /^(\d+) (.*)$/s.exec(textOf(message)) ?? [];
            const known = Object.values(GrpcCode).find((each) => each === Number(code));
            throw new GrpcError(known ?? GrpcCode.OK, text ?? "");
          },
        ],
        [
          BUG,
          () => {
            throw new TypeError("secret details");
          },
        ],
        [BUG_LATER, () => Promise.reject(new TypeError("secret details"))],
      ]),
      streaming: new Map<string, StreamHandler>([
        [STREAM, (_message, stream) => streams.push(stream)],
        [
          TWICE,
          (message, stream) => {
            const copy = Uint8Array.from(message);
            stream.send(copy);
            stream.send(copy);
            stream.end();
          },
        ],
        [
          STREAM_BUG,
          () => {
            throw new TypeError("secret details");
          },
        ],
      ]),
    },
  });
  const port = await server.listen(address);
  return { server, port, received, timeouts, waiting, streams, bugs };
}

function textOf(message: Uint8Array): string {
  return Buffer.from(message).toString("utf8");
}
