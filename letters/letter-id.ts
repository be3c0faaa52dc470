import type { LetterKey } from '../clickhouse/queries/letters/letter.ts'

const PREFIX = 'dlt_'
/** Six bytes for the time of arrival, four for the position, then the job. */
const JOB_AT = 10
/** Far more than any job id has. */
const MAX_CHARACTERS = 300

/** Returns the id of a dead letter. It names a letter within its workspace, and opens nothing by itself. */
export function letterId({ receivedAtMs, jobId, index }: LetterKey): string {
  const bytes = Buffer.alloc(JOB_AT + Buffer.byteLength(jobId))
  bytes.writeUIntBE(Math.floor(receivedAtMs), 0, 6)
  bytes.writeUInt32BE(index, 6)
  bytes.write(jobId, JOB_AT)
  return PREFIX + bytes.toString('base64url')
}

/** Reads the id of a dead letter. Returns undefined for another text. */
export function readLetterId(id: string): LetterKey | undefined {
  if (!id.startsWith(PREFIX) || id.length > MAX_CHARACTERS) return undefined
  const bytes = Buffer.from(id.slice(PREFIX.length), 'base64url')
  if (bytes.length <= JOB_AT) return undefined
  const key = {
    receivedAtMs: bytes.readUIntBE(0, 6),
    index: bytes.readUInt32BE(6),
    jobId: bytes.toString('utf8', JOB_AT),
  }
  return letterId(key) === id ? key : undefined
}
