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
interface LetterObject {
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

/** A letter in the bytes of its object. */
export interface PlacedLetter {
  readonly offset: number
  readonly frame: PayloadFrame
}

/** Returns the letters of an object, with those that were overwritten. */
export function placeLetters(object: Buffer): PlacedLetter[] {
  let offset = PAYLOAD_HEADER_BYTES
  return decodePayload(object).map(frame => {
    const placed = { offset, frame }
    offset += frameBytes(frame)
    return placed
  })
}

/** Overwrites body and attributes of a letter. The object keeps its size, so that the ranges of all letters stay right. */
export function blankLetter(object: Buffer, { offset, frame }: PlacedLetter): void {
  const end = offset + frameBytes(frame)
  const bodyAt = end - frame.body.length
  object.fill(' ', bodyAt - Buffer.byteLength(frame.attributes), bodyAt)
  object.fill(0, bodyAt, end)
}

/** Returns how many letters an object has by its metadata, with those that were overwritten. */
export function letterCount(metadata: Readonly<Record<string, string>>): number {
  return Number(metadata.letters)
}

/** Reports whether a letter was overwritten. */
export function isBlank({ attributes }: PayloadFrame): boolean {
  return attributes.trim() === ''
}
