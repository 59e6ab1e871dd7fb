// A message as it stands in the data of a call: a flag, the length, the bytes (gRPC over HTTP/2, "Length-Prefixed-Message").

/** One byte that says whether the message is compressed, four of length. */
export const PREFIX_BYTES = 5;

/** The message with its prefix. It is never compressed: Envoy does not say that it could read that. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, PREFIX_BYTES);
  return framed;
}
