import { expect, it } from 'vitest'
import type { LoadPlan } from './plan.ts'
import { buildBodies, prepareRequest } from './requests.ts'

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
