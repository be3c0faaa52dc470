import { endOfCut } from '../otlp/protobuf/cut-text.ts'

/** Bytes that are looked through for the end of a line. */
const LINE_BYTES = 1024

/**
 * Decodes a stack of at most about `limitBytes`. A longer one loses its middle, because the innermost frame is at the beginning or
 * at the end. A line between states its size: `    … 123 bytes left out …`.
 */
export function cutStack(bytes: Buffer, start: number, end: number, limitBytes: number): string {
  if (end - start <= limitBytes) return bytes.toString('utf8', start, end)
  const room = limitBytes - 64
  const headEnd = endOfHead(bytes, start, start + room / 2)
  const tailStart = startOfTail(bytes, end - room / 2, end)
  const head = bytes.toString('utf8', start, headEnd)
  return `${head}\n    … ${tailStart - headEnd} bytes left out …\n${bytes.toString('utf8', tailStart, end)}`
}

function endOfHead(bytes: Buffer, start: number, end: number): number {
  const newline = bytes.subarray(end - LINE_BYTES + 1, end + 1).lastIndexOf(0x0a)
  return newline >= 0 ? end - LINE_BYTES + 1 + newline : endOfCut(bytes, start, bytes.length, end - start)
}

function startOfTail(bytes: Buffer, start: number, end: number): number {
  const newline = bytes.subarray(start, start + LINE_BYTES).indexOf(0x0a)
  if (newline >= 0) return start + newline + 1
  let at = start
  while (at < end && ((bytes[at] as number) & 0xc0) === 0x80) at++
  return at
}
