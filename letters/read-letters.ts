import type { Readable } from 'node:stream'
import type { Letter } from '../clickhouse/queries/letters/letter.ts'
import { type DeadLetter, deadLetterSchema } from '../schemas/queues/dead-letters.ts'
import { KIB, MIB } from '../schemas/units.ts'
import { parseJson } from '../shared/json/parse-json.ts'
import type { ByteRange, ObjectStore } from '../shared/object-store/types.ts'
import { decodeLetter, isBlank } from '../shared/queue/letters/letter-object.ts'
import type { PayloadFrame } from '../shared/queue/payload-frame.ts'
import { PermanentError } from '../shared/runtime/errors.ts'

/** Letters that are this close in their object are read together. */
const MAX_GAP_BYTES = 64 * KIB
/** The most bytes of one read, unless one letter is larger. */
const MAX_READ_BYTES = 8 * MIB

/** A dead letter with its bytes. */
export interface LetterContent {
  /** The request as it was sent, with the attributes of the letter. */
  readonly frame: PayloadFrame
  /** The attributes of the letter; undefined if its bytes are damaged. */
  readonly described: DeadLetter | undefined
}

/**
 * Reads letters with few reads of their objects. A letter without bytes is left out: its object has expired, or it was
 * purged. Throws what the object store throws.
 */
export async function readLetters(
  objects: Pick<ObjectStore, 'getStream'>,
  letters: readonly Letter[],
): Promise<Map<Letter, LetterContent>> {
  const contents = new Map<Letter, LetterContent>()
  for (const run of runsOf(letters)) {
    const [first, last] = [run[0] as Letter, run.at(-1) as Letter]
    const range = { start: first.offset, end: last.offset + last.length }
    const object = await readRange(objects, first.objectKey, range)
    if (object === undefined) continue
    for (const letter of run) {
      const from = letter.offset - range.start
      const content = contentOf(object.bytes.subarray(from, from + letter.length), object.metadata)
      if (content !== undefined) contents.set(letter, content)
    }
  }
  return contents
}

/** Groups letters that are read together: neighbours in one object. */
function runsOf(letters: readonly Letter[]): Letter[][] {
  const runs: Letter[][] = []
  const sorted = letters
    .filter(({ objectKey }) => objectKey !== '')
    .toSorted((a, b) => (a.objectKey === b.objectKey ? a.offset - b.offset : a.objectKey < b.objectKey ? -1 : 1))
  for (const letter of sorted) {
    const run = runs.at(-1)
    const [first, last] = [run?.[0], run?.at(-1)]
    const isNear =
      first?.objectKey === letter.objectKey &&
      last !== undefined &&
      letter.offset - (last.offset + last.length) <= MAX_GAP_BYTES &&
      letter.offset + letter.length - first.offset <= MAX_READ_BYTES
    if (isNear) run?.push(letter)
    else runs.push([letter])
  }
  return runs
}

async function readRange(
  objects: Pick<ObjectStore, 'getStream'>,
  key: string,
  range: ByteRange,
): Promise<{ readonly bytes: Buffer; readonly metadata: Readonly<Record<string, string>> } | undefined> {
  const object = await getIfPresent(objects, key, range)
  if (object === undefined) return undefined
  return { bytes: Buffer.concat(await object.body.toArray()), metadata: object.metadata }
}

/** An object that is shorter than the range no longer contains the letter either. */
async function getIfPresent(objects: Pick<ObjectStore, 'getStream'>, key: string, range: ByteRange) {
  try {
    return await objects.getStream(key, range)
  } catch (error) {
    if (error instanceof PermanentError) return undefined
    throw error
  }
}

function contentOf(bytes: Buffer, metadata: Readonly<Record<string, string>>): LetterContent | undefined {
  let frame: PayloadFrame
  try {
    frame = decodeLetter(bytes, metadata)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
  if (isBlank(frame)) return undefined
  return { frame, described: deadLetterSchema.safeParse(parseJson(frame.attributes)).data }
}

/** The head of a letter, which is all but its body. */
export type LetterHead = Pick<PayloadFrame, 'contentType' | 'contentEncoding'>

/** Reads type and encoding of the body of a letter, or undefined if its bytes are gone. */
export async function readLetterHead(
  objects: Pick<ObjectStore, 'getStream'>,
  { objectKey, offset, length, bodyBytes }: Letter,
): Promise<LetterHead | undefined> {
  if (objectKey === '') return undefined
  const object = await readRange(objects, objectKey, { start: offset, end: offset + length - bodyBytes })
  if (object === undefined) return undefined
  // The length of the body is part of the head. Its bytes are not needed to read it.
  const head = Buffer.alloc(length)
  object.bytes.copy(head)
  const content = contentOf(head, object.metadata)
  return content?.frame
}

/** Opens the body of a letter, or returns undefined if its bytes are gone. The caller reads it to its end or destroys it. */
export async function openLetterBody(
  objects: Pick<ObjectStore, 'getStream'>,
  { objectKey, offset, length, bodyBytes }: Letter,
): Promise<Readable | undefined> {
  const end = offset + length
  return (await getIfPresent(objects, objectKey, { start: end - bodyBytes, end }))?.body
}
