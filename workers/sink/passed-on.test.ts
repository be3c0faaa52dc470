import { expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { encodePayload } from '../../shared/queue/payload-frame.ts'
import { ExceptionRecords } from '../exceptions/exception-records.ts'
import { createExceptionsBatch } from '../exceptions/exceptions-batch.ts'
import { entryOf } from './log-entries.ts'
import { type PassedOnRequest, piecesOf, readPassedOn } from './passed-on.ts'

const source = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_000, receipt: 'r'.repeat(16) }
const ids = Buffer.alloc(24, 1)
const record = (message: string) => ({
  ...{
    bytes: ids,
    view: new DataView(ids.buffer, ids.byteOffset, 24),
    traceIdStart: 0,
    spanIdStart: 16,
    parentSpanIdStart: undefined,
  },
  ...{ source: 1, escaped: false, timeLow: 1, timeHigh: 2, findingId: `fnd_${'a'.repeat(26)}`, debugIds: new Map() },
  ...{ serviceName: 'shop', serviceVersion: '1', sessionId: '', spanName: 'GET', type: 'E', message, stacktrace: '' },
  ...{ variantId: ids.subarray(0, 16), fingerprint: '', browser: '', system: '', route: '', environment: '', host: '' },
  topFrame: '',
})

/** Requests with these numbers of records, and the bytes of all records. */
function given(counts: readonly number[], message: string) {
  const records = new ExceptionRecords()
  const requests = counts.map((count, index): PassedOnRequest => {
    const start = records.bytes.length
    for (let i = 0; i < count; i++) records.append(record(message))
    const frame = { ...source, contentType: 'application/json', contentEncoding: 'identity', attributes: '' } as const
    const entry = entryOf(new Map(), 'traces', 'job', { ...frame, body: ids })
    return { source, signal: 'traces', jobId: 'job', index, entry, start, end: records.bytes.length }
  })
  return { requests, records: Buffer.from(records.bytes.written()) }
}

it.each([
  ['small ones share a piece', [1, 0, 2], 'm', 1],
  ['a large one has several frames', [1, 400, 1], 'm'.repeat(8_000), 4],
])('%s', (_, counts, message, pieces) => {
  const { requests, records } = given(counts, message)
  const found = [...piecesOf(requests, records)]
  expect(found).toHaveLength(pieces)
  for (const frames of found) expect(encodePayload(frames).length).toBeLessThanOrEqual(MIB)
  const frames = found.flat()
  expect(Buffer.concat(frames.map(({ body }) => body)).equals(records)).toBe(true)
  const rows = createExceptionsBatch()
  for (const frame of frames) expect(rows.append(frame, frame.body)).toMatchObject({ ok: true })
  expect(rows.rows).toBe(counts.reduce((sum, count) => sum + count, 0))
  // Each request has one outcome, in its last frame.
  expect(frames.filter(({ receipt }) => receipt !== undefined)).toHaveLength(counts.length)
  expect(frames.map(frame => readPassedOn(frame)).filter(read => read?.outcome)).toHaveLength(counts.length)
  expect([...piecesOf(requests, records)]).toEqual(found)
})

it('records that are cut or damaged are refused', () => {
  const { requests, records } = given([1], 'message')
  const [frames = []] = [...piecesOf(requests, records)]
  const [frame] = frames
  if (frame === undefined) throw new Error('there is no frame')
  const rows = createExceptionsBatch()
  for (let end = 1; end < records.length; end++) {
    expect(() => rows.append(frame, records.subarray(0, end)), String(end)).toThrow(RangeError)
  }
  const longer = Buffer.concat([records])
  longer[records.length - 1] = 9
  expect(() => rows.append(frame, longer)).toThrow(RangeError)
  expect(rows.rows).toBe(0)
})

it('records of a newer version are left to a newer worker', () => {
  const attributes = JSON.stringify({ version: 2, signal: 'traces', jobId: 'job' })
  const read = () =>
    readPassedOn({ ...source, attributes, contentType: 'application/json', contentEncoding: 'identity', body: ids })
  expect(read).toThrow('newer worker')
})
