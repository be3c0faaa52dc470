import { hash } from 'node:crypto'
import { base32 } from '../../shared/ids/base32.ts'
import { linesOf, topFrames } from './stack-frames.ts'

const FRAME_COUNT = 5
/** What expressions may see: a longer message differs in its first kilobyte, or is not worth telling apart. */
const MESSAGE_LIMIT = 1024
const ID_LENGTH = 26

/** What makes two exceptions the same finding; `stacktrace` is cut by the caller. */
export interface ExceptionIdentity {
  workspaceId: string
  surfaceId: string
  serviceName: string
  type: string
  message: string
  stacktrace: string
}

/**
 * The id of the finding an exception belongs to (CONTRACT section 5): `fnd_` and 26 base32 characters of SHA-256 over
 * workspace, surface, service, type, and the top five frames, or the normalized message where there is no stack.
 */
export function findingIdOf(exception: ExceptionIdentity): string {
  const { workspaceId, surfaceId, serviceName, type } = exception
  const digest = hash(
    'sha256',
    JSON.stringify([workspaceId, surfaceId, serviceName, type, ...placeOf(exception)]),
    'buffer',
  )
  return `fnd_${base32(digest, ID_LENGTH)}`
}

/** A text says which kind of place it is, so that a message can never collide with a frame. */
function placeOf({ stacktrace, message }: ExceptionIdentity): string[] {
  if (stacktrace.trim() === '') return ['message', normalizeMessage(message)]
  const frames = topFrames(stacktrace, FRAME_COUNT)
  if (frames.length > 0) return ['frames', ...frames]
  return ['lines', ...firstLines(stacktrace)]
}

/** Of a stack in a form that is not known, its first lines as if they were messages. */
function firstLines(stacktrace: string): string[] {
  const lines: string[] = []
  for (const line of linesOf(stacktrace)) {
    if (line !== '') lines.push(normalizeMessage(line))
    if (lines.length === FRAME_COUNT) break
  }
  return lines
}

/** Quoted text, and every word with a digit in it (numbers, ids, hashes, times), becomes `#`. */
export function normalizeMessage(message: string): string {
  return message
    .slice(0, MESSAGE_LIMIT)
    .replace(/"[^"]*"|`[^`]*`|(?<!\w)'[^']*'/g, '#')
    .replace(/[\w-]+/g, word => (/\d/.test(word) ? '#' : word))
}
