/** Returns where the bytes of a string begin whose length, a varint, is at `at`. */
export function startOfString(bytes: Buffer, at: number): number {
  let start = at
  while ((bytes[start] as number) >= 0x80) start++
  return start + 1
}

/** Returns where a string ends whose length, a varint, is at `at`. */
export function endOfString(bytes: Buffer, at: number): number {
  let size = 0
  let start = at
  for (let factor = 1; ; factor *= 0x80) {
    const byte = bytes[start++] as number
    size += (byte & 0x7f) * factor
    if (byte < 0x80) return start + size
  }
}
