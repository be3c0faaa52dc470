import { formatBytes } from '../../../schemas/http/limits.ts'
import type { Problem } from '../../../schemas/http/problems.ts'

/** Bytes before each message: whether it is compressed, and its length. */
export const MESSAGE_HEAD_BYTES = 5

/** The head of an empty message. */
const EMPTY_HEAD = Buffer.alloc(MESSAGE_HEAD_BYTES)

/** Returns a message that is not compressed, behind its head. */
export function framed(message: Uint8Array | undefined): Buffer {
  if (message === undefined || message.length === 0) return EMPTY_HEAD
  const head = Buffer.from(EMPTY_HEAD)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Returns the length of a message that has begun to arrive, or undefined before its head is complete. */
export function announcedLength(bytes: Buffer): number | undefined {
  return bytes.length < MESSAGE_HEAD_BYTES ? undefined : bytes.readUInt32BE(1)
}

/** Returns the problem of the bytes of a call of one message, if they have one. */
export function messageProblem(bytes: Buffer, encoding: string): Problem | undefined {
  const length = announcedLength(bytes)
  if (length === undefined) return invalid('the call has no message')
  if (length !== bytes.length - MESSAGE_HEAD_BYTES) return invalid('the call must have exactly one whole message')
  const flag = bytes[0]
  if (flag !== 0 && flag !== 1) return invalid('the first byte of the message must be 0 or 1')
  return flag === 1 && encoding === 'identity'
    ? invalid('the message is compressed, but grpc-encoding is absent')
    : undefined
}

/** Returns the problem of a message that is over its limit. */
export function messageOverLimit(limitBytes: number): Problem {
  const message = `the message is over the limit of ${formatBytes(limitBytes)}; export smaller batches`
  return { code: 'REQUEST_INVALID', status: 413, message }
}

function invalid(message: string): Problem {
  return { code: 'REQUEST_INVALID', message }
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** Returns the time that a call has, in ms. Without a valid `grpc-timeout` it has no limit. */
export function timeoutMs(header: string | undefined): number {
  const [, amount, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(header ?? '') ?? []
  return amount === undefined ? Number.POSITIVE_INFINITY : Number(amount) * (UNIT_MS[unit] as number)
}
