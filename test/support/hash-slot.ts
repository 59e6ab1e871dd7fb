// Redis Cluster's rule for the slot of a key, from its specification: CRC16 of the hash tag, or of the whole key.

export const SLOTS = 16_384;

/** What stands between the first `{` and the next `}` after it, unless that is nothing; else the whole key. */
export function hashTagOf(key: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

export function slotOf(key: string): number {
  return crc16(Buffer.from(hashTagOf(key), "latin1")) % SLOTS;
}

/** CRC-16/XMODEM: polynomial 0x1021, starting from 0, nothing reflected. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  }
  return crc & 0xffff;
}
