import { decodePayload, encodePayload, frameBytes, PAYLOAD_HEADER_BYTES, type PayloadFrame } from '../payload-frame.ts'

/**
 * An object with dead letters. It is a payload, whose frames are the letters (`payload-frame.ts`):
 *
 *   object := version(u8) letter*
 *   letter := frame, whose attributes are a DeadLetter in JSON
 *
 * A letter has the body as the client sent it, and all that the edge has added. Its row in the table `dead_letters` has its
 * range, so that one letter can be read without the others. The version is in the metadata of the object too, because a
 * range does not contain it.
 */
export interface LetterObject {
  readonly body: Buffer
  readonly metadata: Readonly<Record<string, string>>
  /** The range of each letter, in order. */
  readonly ranges: readonly LetterRange[]
}

/** The bytes of a letter in its object. */
export interface LetterRange {
  readonly offset: number
  readonly length: number
}

/** Content type of an object with dead letters. */
export const LETTER_CONTENT_TYPE = 'application/vnd.penstock.letters'
const VERSION_NAME = 'payload-version'

/** Joins letters into an object. The same letters always make the same bytes. */
export function encodeLetters(letters: readonly PayloadFrame[]): LetterObject {
  const ranges: LetterRange[] = []
  let offset = PAYLOAD_HEADER_BYTES
  for (const letter of letters) {
    const length = frameBytes(letter)
    ranges.push({ offset, length })
    offset += length
  }
  const body = encodePayload(letters)
  return { body, ranges, metadata: { [VERSION_NAME]: String(body[0]), letters: String(letters.length) } }
}

/** Reads a letter from the bytes of its range and the metadata of its object. Throws a RangeError if they are damaged. */
export function decodeLetter(bytes: Buffer, metadata: Readonly<Record<string, string>>): PayloadFrame {
  const version = Number(metadata[VERSION_NAME])
  const [letter, ...others] = decodePayload(Buffer.concat([Buffer.from([version]), bytes]))
  if (letter === undefined || others.length > 0)
    throw new RangeError('the range does not contain exactly one dead letter')
  return letter
}

/**
 * Overwrites bodies and attributes of the letters of an object, except of those that begin at the offsets in `kept`. The
 * object keeps its size, so that the ranges of all letters stay right. Returns whether there was anything to overwrite.
 */
export function blankLetters(object: Buffer, kept: ReadonlySet<number>): boolean {
  let isChanged = false
  let offset = PAYLOAD_HEADER_BYTES
  for (const letter of decodePayload(object)) {
    const end = offset + frameBytes(letter)
    if (!kept.has(offset) && !isBlank(letter)) {
      const bodyAt = end - letter.body.length
      object.fill(' ', bodyAt - Buffer.byteLength(letter.attributes), bodyAt)
      object.fill(0, bodyAt, end)
      isChanged = true
    }
    offset = end
  }
  return isChanged
}

/** Reports whether a letter was overwritten. */
export function isBlank({ attributes }: PayloadFrame): boolean {
  return attributes.trim() === ''
}
