// Writes the protobuf wire format into one buffer that grows as needed. It knows no schema: the caller names fields.

const FIRST_BYTES = 256;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

export class ProtoWriter {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;

  /** What was written so far. */
  finish(): Uint8Array {
    return this.#buffer.subarray(0, this.#at);
  }

  /** A number of 0 to 2^53-1, also when it is 0. */
  varint(field: number, value: number): void {
    this.#reserve(20);
    this.#varint(field * 8 + VARINT);
    this.#varint(value);
  }

  double(field: number, value: number): void {
    this.#reserve(18);
    this.#varint(field * 8 + FIXED64);
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
  }

  /** A text as UTF-8; half a surrogate pair becomes U+FFFD. */
  text(field: number, value: string): void {
    const bytes = Buffer.byteLength(value);
    this.#reserve(20 + bytes);
    this.#varint(field * 8 + BYTES);
    this.#varint(bytes);
    this.#at += this.#buffer.write(value, this.#at);
  }

  /** Begins an embedded message; hand what this returns to `end`. */
  begin(field: number): number {
    this.#reserve(11);
    this.#varint(field * 8 + BYTES);
    this.#at += 1; // Most lengths fit in one byte.
    return this.#at;
  }

  end(start: number): void {
    const length = this.#at - start;
    const extra = lengthBytes(length) - 1;
    if (extra > 0) {
      this.#reserve(extra);
      this.#buffer.copyWithin(start + extra, start, this.#at);
    }
    this.#at = start - 1;
    this.#varint(length);
    this.#at += length;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#at++] = rest;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

function lengthBytes(length: number): number {
  let bytes = 1;
  for (let rest = length; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}
