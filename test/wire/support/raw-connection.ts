// HTTP/2 byte by byte: frames and header blocks written by hand, to see exactly what a server sends and when.
import { connect, type Socket } from "node:net";
import { eventually } from "./eventually.ts";

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const END_STREAM = 1;
export const END_HEADERS = 4;
const ACK = 1;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** The frames of a gRPC call with one message. */
export function callFrames(streamId: number, path: string, message: Uint8Array): Buffer {
  return Buffer.concat([
    frame(FrameType.HEADERS, END_HEADERS, streamId, headerBlock(grpcHeaders(path))),
    frame(FrameType.DATA, END_STREAM, streamId, message),
  ]);
}

export function grpcHeaders(path: string): [string, string][] {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "test"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ];
}

/** Every header as a literal that is not indexed (RFC 7541, section 6.2.2), so that no state is needed. */
export function headerBlock(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]));
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([Buffer.from(integer(bytes.length)), bytes]);
}

/** An integer with a prefix of seven bits (RFC 7541, section 5.1). */
function integer(value: number): number[] {
  if (value < 0x7f) return [value];
  const bytes = [0x7f];
  let rest = value - 0x7f;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

export class RawConnection {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  /** Whether PINGs are answered at once; otherwise the test does so with `pong`. */
  answersPings = true;
  closed = false;
  #rest = Buffer.alloc(0);
  #lastPing: Buffer | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect(port, "127.0.0.1");
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new RawConnection(socket);
  }

  /** Opens a connection and gets to know the server. */
  static async greet(port: number): Promise<RawConnection> {
    const connection = await RawConnection.open(port);
    connection.socket.write(Buffer.concat([PREFACE, frame(FrameType.SETTINGS, 0, 0)]));
    await eventually(() => connection.of(FrameType.SETTINGS).some((each) => each.flags === ACK));
    return connection;
  }

  of(type: number): Frame[] {
    return this.frames.filter((each) => each.type === type);
  }

  /** Whether the server has ended the stream with its trailers. */
  isAnswered(streamId: number): boolean {
    return this.frames.some(
      (each) => each.streamId === streamId && each.type === FrameType.HEADERS && (each.flags & END_STREAM) !== 0,
    );
  }

  /** How many bytes of data the server has allowed in all. */
  connectionWindow(): number {
    const updates = this.of(FrameType.WINDOW_UPDATE).filter((each) => each.streamId === 0);
    return updates.reduce((sum, each) => sum + each.payload.readUInt32BE(0), 65_535);
  }

  pong(): void {
    if (this.#lastPing !== undefined) this.socket.write(frame(FrameType.PING, ACK, 0, this.#lastPing));
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const end = 9 + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      this.#take({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        streamId: this.#rest.readUInt32BE(5),
        payload: Buffer.from(this.#rest.subarray(9, end)),
      });
      this.#rest = this.#rest.subarray(end);
    }
  }

  #take(received: Frame): void {
    this.frames.push(received);
    if (received.flags === ACK) return;
    if (received.type === FrameType.SETTINGS) this.socket.write(frame(FrameType.SETTINGS, ACK, 0));
    if (received.type === FrameType.PING) {
      this.#lastPing = received.payload;
      if (this.answersPings) this.pong();
    }
  }
}
