import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { tracePayload } from '../trace-payload.ts'
import type { LoadPlan, PayloadPlan } from './plan.ts'

/** The bytes of one request, head and body, ready to be written again and again. */
export interface PreparedRequest {
  readonly bytes: Buffer
  /** Where the ids of the body stand in `bytes`: trace, span and parent ids, of which the first four bytes are renewed. */
  readonly idOffsets: Uint32Array
}

/** A pool of bodies, made once per plan: building them costs more than sending them. */
export function buildBodies({ spans, pool }: PayloadPlan): Buffer[] {
  return Array.from({ length: pool }, (_, i) =>
    tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 0, service: `shop-${i % 8}` }),
  )
}

export function prepareRequest(plan: LoadPlan, body: Buffer, poolIndex: number): PreparedRequest {
  const varied = plan.varyHeaders?.[poolIndex % plan.varyHeaders.length]
  const headers = { host: `127.0.0.1:${plan.port}`, ...plan.headers, ...varied, 'content-length': String(body.length) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`POST ${plan.path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  const idOffsets = plan.payload.freshIds ? findIds(body).map(offset => offset + head.length) : []
  return { bytes: Buffer.concat([head, body]), idOffsets: Uint32Array.from(idOffsets) }
}

/**
 * Gives every id of the request new first bytes, the same change to all, so that parents stay parents and the traces lie
 * in another place of the key space than those sent before. 600 ids take 2 µs.
 */
export function renewIds({ bytes, idOffsets }: PreparedRequest, change: number): void {
  for (const offset of idOffsets) bytes.writeInt32LE(bytes.readInt32LE(offset) ^ change, offset)
}

/** A sequence that visits every 32-bit number but zero once (Marsaglia's xorshift). */
export function createChanges(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state
  }
}

const RESOURCE_SPANS = 1
const SCOPE_SPANS = 2
const SPANS = 2
const TRACE_ID = 1
const SPAN_ID = 2
const PARENT_SPAN_ID = 4

/** Offsets of all ids in an ExportTraceServiceRequest. */
export function findIds(body: Buffer): number[] {
  const found: number[] = []
  within(body, 0, body.length, RESOURCE_SPANS, (start, end) =>
    within(body, start, end, SCOPE_SPANS, (scopeStart, scopeEnd) =>
      within(body, scopeStart, scopeEnd, SPANS, (spanStart, spanEnd) => {
        for (const field of [TRACE_ID, SPAN_ID, PARENT_SPAN_ID])
          within(body, spanStart, spanEnd, field, at => found.push(at))
      }),
    ),
  )
  return found
}

/** Calls `each` with the extent of every length-delimited field of this number. */
function within(body: Buffer, start: number, end: number, field: number, each: (start: number, end: number) => void) {
  const reader = new BinaryReader(body.subarray(start, end))
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag()
    if (number !== field || type !== WireType.LengthDelimited) {
      reader.skip(type)
      continue
    }
    const length = reader.uint32()
    each(start + reader.pos, start + reader.pos + length)
    reader.pos += length
  }
}
