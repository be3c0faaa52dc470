import { hash } from 'node:crypto'
import { base32 } from '../../shared/ids/base32.ts'
import { linesOf, topFrames } from './stack-frames.ts'

const FRAME_COUNT = 5
/** Number of characters that are compared. Longer messages that differ only after them count as equal. */
const MESSAGE_LIMIT = 1024
const ID_LENGTH = 26

/** The values that identify a finding. The caller limits the length of `stacktrace`. */
export interface ExceptionIdentity {
  workspaceId: string
  surfaceId: string
  serviceName: string
  type: string
  message: string
  stacktrace: string
}

/**
 * Returns the id of the finding of an exception (docs/api/findings.md#fingerprint). It is `fnd_` and 26 base32 characters
 * of SHA-256 over workspace, surface, service, type, and the top five stack frames, or else the message.
 */
export function findingIdOf(exception: ExceptionIdentity): string {
  const { workspaceId, surfaceId, serviceName, type } = exception
  const digest = hash(
    'sha256',
    JSON.stringify([workspaceId, surfaceId, serviceName, type, ...locationOf(exception)]),
    'buffer',
  )
  return `fnd_${base32(digest, ID_LENGTH)}`
}

/** Returns the texts that locate an exception. The first names their kind, so a message cannot collide with a frame. */
function locationOf({ stacktrace, message }: ExceptionIdentity): string[] {
  if (stacktrace.trim() === '') return ['message', normalizeMessage(message)]
  const frames = topFrames(stacktrace, FRAME_COUNT)
  if (frames.length > 0) return ['frames', ...frames]
  return ['lines', ...firstLines(stacktrace)]
}

/** Returns the first lines of a stack in an unknown format, normalized like messages. */
function firstLines(stacktrace: string): string[] {
  const lines: string[] = []
  for (const line of linesOf(stacktrace)) {
    if (line !== '') lines.push(normalizeMessage(line))
    if (lines.length === FRAME_COUNT) break
  }
  return lines
}

/** Replaces quoted text and words with a digit (numbers, ids, hashes, times) by `#`. */
export function normalizeMessage(message: string): string {
  return message
    .slice(0, MESSAGE_LIMIT)
    .replace(/"[^"]*"|`[^`]*`|(?<!\w)'[^']*'/g, '#')
    .replace(/[\w-]+/g, word => (/\d/.test(word) ? '#' : word))
}
