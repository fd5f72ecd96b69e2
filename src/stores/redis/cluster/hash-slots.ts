/** Which of the 16,384 hash slots of a cluster a key belongs to: CRC16 (XMODEM) of its hash tag, or of all of it. */
export const HASH_SLOTS = 16_384

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

export function hashSlotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashTag(key)))
    crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number)
  return crc % HASH_SLOTS
}

/** The text between the first { and the next }; the whole key if there is none or it is empty. */
function hashTag(key: string): string {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return close > open + 1 ? key.slice(open + 1, close) : key
}
