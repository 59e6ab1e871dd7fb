// The text of the `grpc-message` trailer: UTF-8, all but printable ASCII percent-encoded (gRPC over HTTP/2, "Responses").

/** Longest text that is sent, in characters. Clients bound their header lists, some at 8 KiB. */
export const MAX_MESSAGE_CHARACTERS = 512;

/** Printable ASCII except `%`; a space only inside, as a header value must not begin or end with one. */
const PLAIN = /^(?! )[ -$&-~]*(?<! )$/;

/** Encodes a status text for the trailer; what is too long is cut. */
export function encodeGrpcMessage(text: string): string {
  const short = text.length > MAX_MESSAGE_CHARACTERS ? text.slice(0, MAX_MESSAGE_CHARACTERS) : text;
  if (PLAIN.test(short)) return short;
  const bytes = Buffer.from(short, "utf8");
  let encoded = "";
  for (const [index, byte] of bytes.entries()) {
    const inside = index > 0 && index < bytes.length - 1;
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25 && (byte !== 0x20 || inside);
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}
