// Puts the one message of a call together from the chunks of its data. Every method that weir serves takes exactly one.
// The codes are grpc-go's, except that a compressed message is always UNIMPLEMENTED: nothing here decompresses.
import { GrpcCode, GrpcError } from "./door.ts";
import { PREFIX_BYTES } from "./frame-message.ts";

/** Bytes that all unfinished messages of a server may hold together. */
export interface ByteBudget {
  readonly maxBytes: number;
  usedBytes: number;
}

const FIRST_BUFFER_BYTES = 1024;
const EMPTY = new Uint8Array(0);

/**
 * One reader reads one call. Memory grows with what has arrived, not with the length that was announced, and a message
 * that comes in a single chunk is not copied.
 */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: ByteBudget;
  #prefixBytes = 0;
  /** Of the message; known once the prefix is complete. */
  #length = 0;
  /** How much of the message is there. */
  #filled = 0;
  /** The message, perhaps with room behind it. */
  #buffer: Uint8Array = EMPTY;
  /** How much of `#buffer` was taken from the budget. */
  #reserved = 0;

  constructor(maxMessageBytes: number, budget: ByteBudget) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
  }

  /** Takes the next bytes. Returns what is wrong with the call; after that it must not be fed any further. */
  push(chunk: Uint8Array): GrpcError | undefined {
    let at = 0;
    while (this.#prefixBytes < PREFIX_BYTES && at < chunk.length) {
      const problem = this.#pushPrefix(chunk[at] ?? 0);
      if (problem !== undefined) return problem;
      at += 1;
    }
    const more = chunk.length - at;
    if (more === 0) return undefined;
    if (this.#filled + more > this.#length) {
      return new GrpcError(GrpcCode.INTERNAL, "the call has more than one message");
    }
    if (more === this.#length) {
      this.#buffer = chunk.subarray(at);
    } else {
      if (this.#filled + more > this.#buffer.length && !this.#grow(this.#filled + more)) {
        return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, "too many unfinished messages");
      }
      this.#buffer.set(at === 0 ? chunk : chunk.subarray(at), this.#filled);
    }
    this.#filled += more;
    return undefined;
  }

  /** The message, at the end of the data; or why there is none. */
  end(): Uint8Array | GrpcError {
    if (this.#prefixBytes === 0) return new GrpcError(GrpcCode.INTERNAL, "the call has no message");
    if (this.#prefixBytes < PREFIX_BYTES || this.#filled < this.#length) {
      return new GrpcError(GrpcCode.INTERNAL, "the call ends within its message");
    }
    return this.#buffer.length === this.#length ? this.#buffer : this.#buffer.subarray(0, this.#length);
  }

  /** Gives the memory back. Call it once the call is over or its message was used; doing so twice is harmless. */
  release(): void {
    this.#budget.usedBytes -= this.#reserved;
    this.#reserved = 0;
    this.#buffer = EMPTY;
  }

  #pushPrefix(byte: number): GrpcError | undefined {
    this.#prefixBytes += 1;
    if (this.#prefixBytes === 1) {
      if (byte === 0) return undefined;
      return byte === 1
        ? new GrpcError(GrpcCode.UNIMPLEMENTED, "compressed messages are not supported")
        : new GrpcError(GrpcCode.INTERNAL, `unknown message flag ${byte}`);
    }
    this.#length = this.#length * 256 + byte;
    if (this.#prefixBytes < PREFIX_BYTES || this.#length <= this.#maxMessageBytes) return undefined;
    return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `the message is larger than ${this.#maxMessageBytes} bytes`);
  }

  /** Makes room for that many bytes; false when the budget has none left. */
  #grow(bytes: number): boolean {
    const size = Math.min(this.#length, Math.max(bytes, FIRST_BUFFER_BYTES, 2 * this.#buffer.length));
    const more = size - this.#reserved;
    if (this.#budget.usedBytes + more > this.#budget.maxBytes) return false;
    this.#budget.usedBytes += more;
    this.#reserved = size;
    // Not from Node's pool, where a small piece would keep a large slab alive.
    const buffer = Buffer.allocUnsafeSlow(size);
    buffer.set(this.#buffer.subarray(0, this.#filled));
    this.#buffer = buffer;
    return true;
  }
}
