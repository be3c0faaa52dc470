import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { LoadPlan } from './plan.ts'
import { buildBodies, isGzip, prepareRequest } from './requests.ts'
import { shareOut } from './run-load.ts'

const plan: LoadPlan = {
  port: 4318,
  path: '/drain/v1/traces',
  headers: { 'x-service-public-key': 'pk' },
  varyHeaders: [{ 'x-turn': 'first' }, { 'x-turn': 'second' }],
  connections: 1,
  payload: { spans: 3, pool: 2, freshIds: true },
  mode: { kind: 'closed' },
  warmUpMs: 0,
  durationMs: 0,
}

it.each(['traces', 'logs', 'metrics'] as const)(
  'builds one body of %s for each slot of the pool, all different',
  signal => {
    const bodies = buildBodies({ ...plan.payload, signal })
    expect(new Set(bodies.map(body => body.toString('latin1'))).size).toBe(2)
  },
)

it('writes a valid HTTP request with the headers of its turn', () => {
  const [, body = Buffer.alloc(0)] = buildBodies(plan.payload)
  const { bytes } = prepareRequest(plan, body, 1)
  const headEnd = bytes.indexOf('\r\n\r\n')
  expect(bytes.toString('latin1', 0, headEnd).split('\r\n')).toEqual([
    'POST /drain/v1/traces HTTP/1.1',
    'host: 127.0.0.1:4318',
    'x-service-public-key: pk',
    'x-turn: second',
    `content-length: ${body.length}`,
  ])
  expect(bytes.subarray(headEnd + 4)).toEqual(body)
})

it('renews nothing when freshIds is off', () => {
  const [body = Buffer.alloc(0)] = buildBodies(plan.payload)
  const { renewable } = prepareRequest({ ...plan, payload: { ...plan.payload, freshIds: false } }, body, 0)
  expect([renewable.ids.length, renewable.times.length]).toEqual([0, 0])
})

it.each(['uniform', 'exceptions', 'realistic'] as const)('builds %s spans', data => {
  const bodies = buildBodies({ ...plan.payload, data })
  expect(bodies).toHaveLength(2)
  expect(bodies.some(isGzip)).toBe(false)
})

it('compresses all bodies or enough of them beside the others, each with other ids', () => {
  const payload = { ...plan.payload, spans: 1 } as const
  const all = buildBodies({ ...payload, gzip: 'all' })
  expect(all).toHaveLength(32_768)
  expect(new Set(all.slice(0, 50).map(body => gunzipSync(body).toString('latin1'))).size).toBe(50)
  const half = buildBodies({ ...payload, gzip: 'half' })
  expect(half.findIndex(isGzip)).toBe(2)
  expect(half).toHaveLength(2 + 32_768)
})

it('sends compressed and other bodies alternately on every connection, and states which ones are compressed', () => {
  const body = Buffer.from([0x0a, 0])
  const packed = gzipSync(body)
  const halves = { ...plan, connections: 2, payload: { ...plan.payload, freshIds: false, gzip: 'half' as const } }
  const shares = shareOut(halves, [body, body, packed, packed, packed, packed])
  const encodings = shares.map(requests => requests.map(({ bytes }) => bytes.includes('content-encoding: gzip')))
  expect(encodings).toEqual([
    [false, true, false, true],
    [false, true, false, true],
  ])
})
