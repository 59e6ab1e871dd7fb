// Between text and byte strings. Everything that leaves in an answer must be valid UTF-8: Envoy drops an answer that
// it cannot parse and lets the request pass.
import type { ByteString } from "./descriptor.ts";

const ASCII = /^[^\x80-\uffff]*$/;

/** The UTF-8 bytes of a text. A lone surrogate, which has no bytes, becomes U+FFFD. */
export function toBytes(text: string): ByteString {
  if (ASCII.test(text)) return text;
  let bytes = "";
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point < 0x80) bytes += character;
    else if (point < 0x800) bytes += byte(0xc0 | (point >> 6), point);
    else if (point >= 0xd800 && point <= 0xdfff) bytes += "\xef\xbf\xbd";
    else if (point < 0x10000) bytes += byte(0xe0 | (point >> 12), point >> 6, point);
    else bytes += byte(0xf0 | (point >> 18), point >> 12, point >> 6, point);
  }
  return bytes;
}

/** A first byte and the continuation bytes that carry the low six bits of each further number. */
function byte(first: number, ...rest: number[]): ByteString {
  return String.fromCharCode(first, ...rest.map((bits) => 0x80 | (bits & 0x3f)));
}

/** The text that the bytes encode in UTF-8; bytes that are not UTF-8 are shown as `\xHH`. */
export function toText(bytes: ByteString): string {
  if (ASCII.test(bytes)) return bytes;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at);
    if (length === 0) {
      text += `\\x${bytes.charCodeAt(at).toString(16).padStart(2, "0")}`;
      at += 1;
    } else {
      text += String.fromCodePoint(codePoint(bytes, at, length));
      at += length;
    }
  }
  return text;
}

/** Length of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7), 0 if there is none. */
function sequenceLength(bytes: ByteString, at: number): number {
  const first = bytes.charCodeAt(at);
  if (first < 0x80) return 1;
  const length =
    first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length === 0 || at + length > bytes.length) return 0;
  for (let i = 1; i < length; i++) if ((bytes.charCodeAt(at + i) & 0xc0) !== 0x80) return 0;
  const second = bytes.charCodeAt(at + 1);
  if (first === 0xe0 && second < 0xa0) return 0; // could be shorter
  if (first === 0xed && second > 0x9f) return 0; // a surrogate
  if (first === 0xf0 && second < 0x90) return 0; // could be shorter
  if (first === 0xf4 && second > 0x8f) return 0; // above U+10FFFF
  return length;
}

function codePoint(bytes: ByteString, at: number, length: number): number {
  let point = bytes.charCodeAt(at) & (length === 1 ? 0x7f : 0xff >> (length + 1));
  for (let i = 1; i < length; i++) point = (point << 6) | (bytes.charCodeAt(at + i) & 0x3f);
  return point;
}
