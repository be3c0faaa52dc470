import { MIB } from '../../../schemas/units.ts'
import { parseLine, type RecordLine } from './lines.ts'
import { LineError, readLines } from './read-lines.ts'

const LINE_LIMIT_BYTES = 4 * MIB

/** A line of an export with a record. */
interface NumberedRecord {
  /** Number of the line, counted from 1. */
  readonly number: number
  readonly line: RecordLine
}

/**
 * Yields the records of an export. Throws a LineError if a line is invalid, or if the last line is missing or counts other
 * records than there are.
 */
export async function* readExport(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<NumberedRecord> {
  let records = 0
  let isComplete = false
  for await (const { number, text } of readLines(pieces, LINE_LIMIT_BYTES)) {
    const parsed = parseLine(text)
    if (!parsed.ok) throw new LineError(`line ${number}: ${parsed.reason}`)
    if (isComplete) throw new LineError(`line ${number}: comes after the last line`)
    const { line } = parsed
    if (line.kind !== 'end') {
      records += 1
      yield { number, line }
      continue
    }
    if (line.record.records !== records) {
      throw new LineError(`line ${number}: expected ${line.record.records} records before it, found ${records}`)
    }
    isComplete = true
  }
  if (!isComplete) throw new LineError(`the last line is missing ({"kind":"end",…}): the text is incomplete`)
}
