// CRC-32, as Node has it itself from 20.15 on.
import zlib from 'node:zlib';

// Of a byte with 0 to 3 bytes behind it.
const TABLES = [new Uint32Array(256), new Uint32Array(256), new Uint32Array(256), new Uint32Array(256)];
for (let i = 0; i < 256; ++i) {
  let rest = i;
  for (let bit = 0; bit < 8; ++bit) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  TABLES[0][i] = rest;
}
for (let i = 0; i < 256; ++i) {
  for (let behind = 1; behind < 4; ++behind) {
    const before = TABLES[behind - 1][i];
    TABLES[behind][i] = TABLES[0][before & 255] ^ (before >>> 8);
  }
}

// The checksum of bytes that follow others, of which `sum` is the checksum.
export function crc32ByTables(bytes, sum = 0) {
  const [last, third, second, first] = TABLES;
  const whole = bytes.length - (bytes.length % 4);
  let crc = ~sum;
  let i = 0;
  for (; i < whole; i += 4) {
    crc ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    crc = first[crc & 255] ^ second[(crc >>> 8) & 255] ^ third[(crc >>> 16) & 255] ^ last[crc >>> 24];
  }
  for (; i < bytes.length; ++i) crc = last[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

export const crc32 = zlib.crc32 ?? crc32ByTables;
