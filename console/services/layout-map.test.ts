import { expect, it } from 'vitest'
import type { ServiceEdge } from '../api/generated/client.ts'
import { layoutMap, NODE } from './layout-map.ts'

const durations = { average: 1, p50: 1, p95: 1, p99: 1 }
const call = (caller: string | null, callee: string | null, more: Partial<ServiceEdge> = {}): ServiceEdge => ({
  ...{
    caller,
    callee,
    kind: 'request',
    peer: null,
    calls: 10,
    errors: 1,
    durationMs: durations,
    callerDurationMs: null,
  },
  slowest: { traceId: '0'.repeat(32), durationMs: 1 },
  ...more,
})

/** Fifty services in five layers, each of which calls three of the next. */
const FIFTY = Array.from({ length: 40 }, (_, i) =>
  [0, 1, 2].map(k => call(`s${i}`, `s${10 * (Math.floor(i / 10) + 1) + ((i + 3 * k) % 10)}`)),
).flat()

it('draws callers left of what they call, and no box over another', () => {
  const { nodes, edges, width, height } = layoutMap(FIFTY)
  expect([nodes.length, edges.length]).toEqual([50, 120])
  const at = new Map(nodes.map(node => [node.id, node]))
  for (const { from, to } of edges) expect((at.get(from)?.x ?? 0) + NODE.width).toBeLessThan(at.get(to)?.x ?? 0)
  for (const [i, a] of nodes.entries()) {
    expect(a.x >= 0 && a.y >= 0 && a.x + NODE.width <= width && a.y + NODE.height <= height).toBe(true)
    for (const b of nodes.slice(i + 1)) {
      expect(Math.abs(a.x - b.x) >= NODE.width || Math.abs(a.y - b.y) >= NODE.height, `${a.id} ${b.id}`).toBe(true)
    }
  }
})

it('joins the calls between two services, and shows each missing side beside its service', () => {
  const message = call('web', 'cart', { kind: 'message', calls: 5, errors: 0, durationMs: { ...durations, p95: 7 } })
  const peer = { system: 'postgresql', name: 'carts' }
  const { nodes, edges } = layoutMap([
    ...[call('web', 'cart'), message, call(null, 'cart'), call(null, 'mail'), call('cart', null)],
    ...[
      call('cart', null, { kind: 'database', peer }),
      call('mail', null, { kind: 'database', peer }),
      call('cart', 'cart'),
    ],
  ])
  expect(nodes.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([
    ...['database carts', 'service cart', 'service mail', 'service web'],
    ...['unknown unknown', 'unknown unknown caller', 'unknown unknown caller'],
  ])
  expect(edges).toHaveLength(7)
  expect(edges[0]).toMatchObject({ from: 'service web', to: 'service cart', calls: 15, errors: 1, p95Ms: 7 })
})
