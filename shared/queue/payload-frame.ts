import { RECEIPT_BYTES } from '../ids/receipt.ts'

/**
 * The payload of a job in Redis: framed requests, one after the other, little-endian.
 *
 *   payload := version(u8 = 1) frame*
 *   frame   := bodyLength(u32) receivedAtMs(f64) contentType(u8) contentEncoding(u8)
 *              workspaceLength(u8) surfaceLength(u8) attributesLength(u32) receipt(16 bytes, zeros for none)
 *              cost(u32) workspaceId(latin1) surfaceId(latin1) attributes(UTF-8 JSON, may be empty) body
 *
 * A payload frame contains everything that rows are derived from, so decoding it again always returns the same rows. A worker
 * leaves a payload of another version in Redis.
 */
const VERSION = 1
const RECEIPT_AT = 20
const COST_AT = RECEIPT_AT + RECEIPT_BYTES
const FIXED_BYTES = COST_AT + 4
const NO_RECEIPT = '\0'.repeat(RECEIPT_BYTES)
/** Size of a payload without frames. */
export const PAYLOAD_HEADER_BYTES = 1

/** Content types of bodies; a frame contains the index. */
export const CONTENT_TYPES = ['application/octet-stream', 'application/x-protobuf', 'application/json'] as const
/** Content type of a body. */
export type ContentType = (typeof CONTENT_TYPES)[number]

/** Content encodings of bodies; a frame contains the index. */
export const CONTENT_ENCODINGS = ['identity', 'gzip', 'deflate', 'zstd'] as const
/** Content encoding of a body. */
export type ContentEncoding = (typeof CONTENT_ENCODINGS)[number]

/** One request within a payload. */
export interface PayloadFrame {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Unix time of the request's arrival at the edge. */
  readonly receivedAtMs: number
  readonly contentType: ContentType
  readonly contentEncoding: ContentEncoding
  /** Properties of the request that are not in its body, as JSON; empty if there are none. */
  readonly attributes: string
  /** The 16 bytes of the receipt in latin1 (`receipt.ts`); undefined if no client has a receipt for the request. */
  readonly receipt?: string | undefined
  /**
   * Estimated work for the workers, in decoded bytes. It is what the request adds to the share of its surface, and what
   * settling the request subtracts again. The size of the body if absent.
   */
  readonly cost?: number | undefined
  /** The bytes as the client sent them, compressed as `contentEncoding` states. A view into the payload after decoding. */
  readonly body: Buffer
}

const MAX_COST = 0xffff_ffff

/** Returns the cost of a frame as a payload stores it. */
export function frameCost(frame: Pick<PayloadFrame, 'cost' | 'body'>): number {
  return Math.min(MAX_COST, Math.ceil(frame.cost ?? frame.body.length))
}

/** Returns the frame with this value as its JSON body, for the next queue. Ids, time and receipt stay the same. */
export function withJsonBody(frame: PayloadFrame, value: object): PayloadFrame {
  return {
    ...frame,
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: '',
    cost: undefined,
    body: Buffer.from(JSON.stringify(value)),
  }
}

/** Returns the size of a frame in a payload. Ids are latin1, because the directory creates them. */
export function frameBytes(frame: PayloadFrame): number {
  return (
    FIXED_BYTES +
    frame.workspaceId.length +
    frame.surfaceId.length +
    (frame.attributes === '' ? 0 : Buffer.byteLength(frame.attributes)) +
    frame.body.length
  )
}

/** Joins frames into a payload. */
export function encodePayload(frames: readonly PayloadFrame[]): Buffer {
  let length = PAYLOAD_HEADER_BYTES
  for (const frame of frames) length += frameBytes(frame)
  const payload = Buffer.allocUnsafe(length)
  let end = beginPayload(payload)
  for (const frame of frames) end = appendFrame(payload, end, frame)
  return payload
}

/** Writes the header at the start of the buffer and returns the offset of the first frame. */
export function beginPayload(buffer: Buffer): number {
  buffer[0] = VERSION
  return PAYLOAD_HEADER_BYTES
}

/**
 * Copies a frame with its body to the offset `at` and returns the offset after it. The buffer must have room for
 * `frameBytes`. `receipt` and `cost` take precedence over those of the frame.
 */
export function appendFrame(
  buffer: Buffer,
  at: number,
  frame: PayloadFrame,
  receipt?: Buffer,
  cost: number = frameCost(frame),
): number {
  let end = at + FIXED_BYTES
  if (receipt) buffer.set(receipt, at + RECEIPT_AT)
  else buffer.write(frame.receipt ?? NO_RECEIPT, at + RECEIPT_AT, 'latin1')
  end += buffer.write(frame.workspaceId, end, 'latin1')
  end += buffer.write(frame.surfaceId, end, 'latin1')
  const attributesStart = end
  if (frame.attributes !== '') end += buffer.write(frame.attributes, end, 'utf8')
  buffer.writeUInt32LE(frame.body.length, at)
  buffer.writeDoubleLE(frame.receivedAtMs, at + 4)
  buffer[at + 12] = CONTENT_TYPES.indexOf(frame.contentType)
  buffer[at + 13] = CONTENT_ENCODINGS.indexOf(frame.contentEncoding)
  buffer[at + 14] = frame.workspaceId.length
  buffer[at + 15] = frame.surfaceId.length
  buffer.writeUInt32LE(end - attributesStart, at + 16)
  buffer.writeUInt32LE(cost, at + COST_AT)
  buffer.set(frame.body, end)
  return end + frame.body.length
}

/** Number of bytes at the beginning of a payload that contain the owner of its first frame. */
export const OWNER_BYTES = PAYLOAD_HEADER_BYTES + FIXED_BYTES + 2 * 255

/**
 * Reads workspace and surface of the first frame from the beginning of a payload. Returns undefined if there is no frame or
 * its owner is cut. Throws a RangeError for an unknown version.
 */
export function ownerOfPayload(head: Buffer): Pick<PayloadFrame, 'workspaceId' | 'surfaceId'> | undefined {
  if (head.length <= PAYLOAD_HEADER_BYTES + 15) return undefined
  assertVersion(head)
  const workspaceStart = PAYLOAD_HEADER_BYTES + FIXED_BYTES
  const surfaceStart = workspaceStart + head.readUInt8(PAYLOAD_HEADER_BYTES + 14)
  const end = surfaceStart + head.readUInt8(PAYLOAD_HEADER_BYTES + 15)
  if (end > head.length) return undefined
  return {
    workspaceId: head.toString('latin1', workspaceStart, surfaceStart),
    surfaceId: head.toString('latin1', surfaceStart, end),
  }
}

/** Splits a payload into frames, whose bodies are views into it. Throws a RangeError if the payload is not complete. */
export function decodePayload(payload: Buffer): PayloadFrame[] {
  assertVersion(payload)
  const frames: PayloadFrame[] = []
  let at = PAYLOAD_HEADER_BYTES
  while (at < payload.length) {
    if (at + FIXED_BYTES > payload.length) throw new RangeError('payload ends within a frame header')
    const workspaceStart = at + FIXED_BYTES
    const receipt = payload.toString('latin1', at + RECEIPT_AT, at + COST_AT)
    const surfaceStart = workspaceStart + payload.readUInt8(at + 14)
    const attributesStart = surfaceStart + payload.readUInt8(at + 15)
    const bodyStart = attributesStart + payload.readUInt32LE(at + 16)
    const end = bodyStart + payload.readUInt32LE(at)
    const contentType = CONTENT_TYPES[payload.readUInt8(at + 12)]
    const contentEncoding = CONTENT_ENCODINGS[payload.readUInt8(at + 13)]
    if (end > payload.length) throw new RangeError('payload ends within a frame')
    if (contentType === undefined || contentEncoding === undefined)
      throw new RangeError('frame header has an unknown content type or encoding')
    frames.push({
      workspaceId: payload.toString('latin1', workspaceStart, surfaceStart),
      surfaceId: payload.toString('latin1', surfaceStart, attributesStart),
      receivedAtMs: payload.readDoubleLE(at + 4),
      contentType,
      contentEncoding,
      attributes: payload.toString('utf8', attributesStart, bodyStart),
      receipt: receipt === NO_RECEIPT ? undefined : receipt,
      cost: payload.readUInt32LE(at + COST_AT),
      body: payload.subarray(bodyStart, end),
    })
    at = end
  }
  return frames
}

function assertVersion(payload: Buffer): void {
  if (payload[0] !== VERSION) throw new RangeError(`payload version ${payload[0]} is unknown`)
}
