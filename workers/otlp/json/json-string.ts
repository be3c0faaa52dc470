import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { hexValue } from './hex.ts'
import { INVALID_JSON } from './json-refusals.ts'
import { putLength } from './protobuf-writer.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75
/** Characters of simple escapes by letter; 0 if there is none. */
const SIMPLE_ESCAPES = new Uint8Array(256)
for (const [letter, byte] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map(pair => Buffer.from(pair))) {
  SIMPLE_ESCAPES[letter as number] = byte as number
}

/** Strings up to this length, nearly all of them, are copied while the end is searched. */
const SHORT_STRING_BYTES = 124

/**
 * Appends the string whose first byte is at `start`, after its length. Returns the position after its closing quote.
 * Invalid UTF-8 is copied unchanged, as in protobuf payloads. Copying four bytes at a time takes 16 ns for 20 bytes and
 * 49 for 100, against 20 and 86 byte by byte.
 */
export function copyString(bytes: Buffer, view: DataView, start: number, out: GrowingBuffer): number {
  out.reserve(SHORT_STRING_BYTES + 8)
  const target = out.view
  const before = out.length
  const last = Math.min(bytes.length - 4, start + SHORT_STRING_BYTES)
  let at = before + 1
  let pos = start
  for (; pos <= last; pos += 4, at += 4) {
    const word = view.getInt32(pos, true)
    target.setInt32(at, word, true)
    const special = specialBytes(word)
    if (special === 0) continue
    pos += lowestByte(special)
    if (bytes[pos] !== QUOTE) break
    const size = pos - start
    target.setUint8(before, size)
    out.length = before + 1 + size
    return pos + 1
  }
  return copyUncommonString(bytes, view, start, out)
}

/** Appends a string that is long, has escapes, or is at the end of the input. */
function copyUncommonString(bytes: Buffer, view: DataView, start: number, out: GrowingBuffer): number {
  const close = endOfString(bytes, view, start)
  if (close >= 0) {
    out.string(bytes, view, start, close)
    return close + 1
  }
  // Unescaped text is never longer. If its length needs fewer bytes, the length is padded.
  const end = ~close
  const lengthBytes = varintBytes(end - start)
  out.reserve(end - start + lengthBytes)
  out.length += lengthBytes
  const textStart = out.length
  unescapeString(bytes, view, start, end, out)
  putLength(out, textStart, lengthBytes)
  return end + 1
}

/**
 * Returns the position of the closing quote of the string whose first byte is at `start`, or its complement if the
 * string has escapes. All escapes are then valid.
 */
export function endOfString(bytes: Buffer, view: DataView, start: number): number {
  const end = bytes.length
  let hasEscapes = false
  for (let pos = start; pos < end; ) {
    if (pos + 4 <= end) {
      const special = specialBytes(view.getInt32(pos, true))
      if (special === 0) {
        pos += 4
        continue
      }
      pos += lowestByte(special)
    }
    const byte = bytes[pos] as number
    if (byte === QUOTE) return hasEscapes ? ~pos : pos
    if (byte === BACKSLASH) {
      hasEscapes = true
      pos = afterEscape(bytes, pos)
    } else if (byte < 0x20) throw INVALID_JSON
    else pos++
  }
  throw INVALID_JSON
}

function afterEscape(bytes: Buffer, pos: number): number {
  const letter = pos + 1 < bytes.length ? (bytes[pos + 1] as number) : 0
  if (letter === LETTER_U) {
    if (pos + 6 > bytes.length || codeUnit(bytes, pos + 2) < 0) throw INVALID_JSON
    return pos + 6
  }
  if (SIMPLE_ESCAPES[letter] === 0) throw INVALID_JSON
  return pos + 2
}

/** Appends the text of `[start, end)`, whose escapes are valid. A lone surrogate becomes U+FFFD. */
export function unescapeString(bytes: Buffer, view: DataView, start: number, end: number, out: GrowingBuffer): void {
  out.reserve(end - start)
  const target = out.view
  let at = out.length
  for (let pos = start; pos < end; ) {
    if (pos + 4 <= end) {
      const word = view.getInt32(pos, true)
      target.setInt32(at, word, true)
      const special = specialBytes(word)
      const plain = special === 0 ? 4 : lowestByte(special)
      pos += plain
      at += plain
      if (special === 0) continue
    }
    const byte = bytes[pos] as number
    if (byte !== BACKSLASH) {
      target.setUint8(at++, byte)
      pos++
      continue
    }
    const letter = bytes[pos + 1] as number
    if (letter !== LETTER_U) {
      target.setUint8(at++, SIMPLE_ESCAPES[letter] as number)
      pos += 2
      continue
    }
    let code = codeUnit(bytes, pos + 2)
    pos += 6
    if (code >= 0xd800 && code <= 0xdfff) {
      const low = code < 0xdc00 && isUnicodeEscape(bytes, pos) ? codeUnit(bytes, pos + 2) : 0
      if (low >= 0xdc00 && low <= 0xdfff) {
        code = 0x1_0000 + ((code & 0x3ff) << 10) + (low & 0x3ff)
        pos += 6
      } else code = 0xfffd
    }
    at = putUtf8(target, at, code)
  }
  out.length = at
}

/** Reads the low surrogate after a high one. The quote at the end of the text is not a surrogate. */
function isUnicodeEscape(bytes: Buffer, pos: number): boolean {
  return bytes[pos] === BACKSLASH && bytes[pos + 1] === LETTER_U
}

/** Returns the value of four hex digits, or a negative number if they are not hex digits. */
function codeUnit(bytes: Buffer, pos: number): number {
  const high = hexValue(bytes[pos] as number, bytes[pos + 1] as number)
  const low = hexValue(bytes[pos + 2] as number, bytes[pos + 3] as number)
  return high > 0xff || low > 0xff ? -1 : (high << 8) | low
}

function putUtf8(target: DataView, start: number, code: number): number {
  let at = start
  if (code < 0x80) target.setUint8(at++, code)
  else {
    if (code < 0x800) target.setUint8(at++, 0xc0 | (code >> 6))
    else {
      if (code < 0x1_0000) target.setUint8(at++, 0xe0 | (code >> 12))
      else {
        target.setUint8(at++, 0xf0 | (code >> 18))
        target.setUint8(at++, 0x80 | ((code >> 12) & 0x3f))
      }
      target.setUint8(at++, 0x80 | ((code >> 6) & 0x3f))
    }
    target.setUint8(at++, 0x80 | (code & 0x3f))
  }
  return at
}

/**
 * Returns non-zero if a byte of the word is a quote, a backslash or a control character. The lowest set bit is then the
 * top bit of the first such byte. A borrow may set higher bits.
 */
function specialBytes(word: number): number {
  const quote = word ^ 0x22222222
  const backslash = word ^ 0x5c5c5c5c
  return (
    (((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash) | ((word - 0x20202020) & ~word)) &
    0x80808080
  )
}

/** Returns the index of the byte with the lowest set bit. */
function lowestByte(bits: number): number {
  return (31 - Math.clz32(bits & -bits)) >> 3
}

function varintBytes(value: number): number {
  let size = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++
  return size
}
