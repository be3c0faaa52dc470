import type { Part } from '../../shared/scrubbing/values/part.ts'

/**
 * The text of a JSON string in UTF-8, whose positions lead back to the string: a part of the text can be replaced in the string,
 * whose other bytes stay.
 */
export class UnescapedText {
  readonly bytes: Buffer
  readonly #json: Buffer
  /** The same position in JSON and in the text. */
  #raw: number
  #position = 0

  /** `string` is the string without its quotes. */
  constructor(json: Buffer, string: Part) {
    this.#json = json
    this.#raw = string.start
    // An escape is longer than its character, unless it lacks its end, as in invalid JSON.
    const bytes = Buffer.allocUnsafe(string.end - string.start + REPLACEMENT_BYTES)
    let length = 0
    for (let at = string.start; at < string.end; ) {
      const byte = json[at] as number
      if (byte !== BACKSLASH) {
        bytes[length++] = byte
        at++
        continue
      }
      const code = characterAt(json, at)
      if (code < 0x80) bytes[length++] = code
      else length += bytes.write(String.fromCodePoint(code), length)
      at += escapeBytes(json, at, code)
    }
    this.bytes = bytes.subarray(0, length)
  }

  /** Returns where a character of the text begins in JSON. Positions must not decrease from call to call. */
  rawOf(position: number): number {
    while (this.#position < position) {
      const byte = this.#json[this.#raw] as number
      const code = byte === BACKSLASH ? characterAt(this.#json, this.#raw) : undefined
      this.#position += code === undefined ? 1 : textBytes(code)
      this.#raw += code === undefined ? 1 : escapeBytes(this.#json, this.#raw, code)
    }
    return this.#raw
  }
}

const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Replaces half of a pair of surrogates, as in `Buffer.from`. */
const REPLACEMENT = 0xfffd
const REPLACEMENT_BYTES = 3
/** Values of hexadecimal digits, and 0 for other bytes, which valid JSON does not have there. */
const HEX = Uint8Array.from({ length: 256 }, (_, byte) => Number.parseInt(String.fromCharCode(byte), 16) || 0)
/** Control characters that have an escape of one letter. Behind a backslash, other characters are themselves. */
const CONTROLS: ReadonlyMap<number, number> = new Map(
  [...'bfnrt'].map((letter, i) => [letter.charCodeAt(0), '\b\f\n\r\t'.charCodeAt(i)] as const),
)

/** Returns the character of the escape at `at`, or any character if the escape is invalid. */
function characterAt(json: Buffer, at: number): number {
  const letter = json[at + 1] ?? BACKSLASH
  if (letter !== LOWER_U) return CONTROLS.get(letter) ?? (letter < 0x80 ? letter : REPLACEMENT)
  const unit = unitAt(json, at)
  if (unit < 0xd800 || unit > 0xdfff) return unit
  const isPair = unit < 0xdc00 && json[at + 6] === BACKSLASH && json[at + 7] === LOWER_U
  const low = isPair ? unitAt(json, at + 6) : 0
  return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00 : REPLACEMENT
}

function unitAt(json: Buffer, at: number): number {
  let unit = 0
  for (let i = at + 2; i < at + 6; i++) unit = (unit << 4) | (HEX[json[i] ?? 0] as number)
  return unit
}

function escapeBytes(json: Buffer, at: number, code: number): number {
  if (json[at + 1] !== LOWER_U) return 2
  return code > 0xffff ? 12 : 6
}

function textBytes(code: number): number {
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code > 0xffff ? 4 : 3
}
