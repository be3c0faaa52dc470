import { describe, expect, it } from 'vitest'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { createJsonTranscoder } from '../json/transcode-json.ts'
import { createSpansBatch } from './spans.ts'

const transcoder = createJsonTranscoder()

/** Returns the peers of spans of this kind with these attributes, in one batch. */
function peersOf(kind: number, ...all: readonly Readonly<Record<string, unknown>>[]): string[] {
  const spans = all.map((attributes, i) => ({
    ...{ traceId: '1'.padStart(32, '0'), spanId: String(i + 1).padStart(16, '0'), kind },
    attributes: Object.entries(attributes).map(([key, value]) => ({
      key,
      value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
    })),
  }))
  const read = transcoder.transcode(
    'traces',
    Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })),
  )
  if (!read.ok) throw new Error(read.reason)
  const batch = createSpansBatch()
  const origin = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_000 }
  expect(batch.append(origin as never, read.message).ok).toBe(true)
  const rows = readTables(batch).get('spans') ?? []
  return rows.map(({ peer }) => String(peer))
}

describe('the peer of a client', () => {
  it.each([
    [{ 'db.system': 'redis', 'net.peer.name': 'cache' }, 'database redis cache'],
    [
      { 'db.system.name': 'mysql', 'db.system': 'old', 'db.namespace': 'shop', 'server.address': 'db' },
      'database mysql shop',
    ],
    [{ 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' }, 'queue kafka orders'],
    [{ 'messaging.system': 'sqs' }, 'queue sqs '],
    [{ 'rpc.system': 'aws-api', 'rpc.service': 'S3' }, 'request aws-api S3'],
    [{ 'http.url': 'https://user:pass@api.bank.example:8443/v1?card=1' }, 'request  api.bank.example'],
    [{ 'url.full': 'http://[::1]:80/' }, 'request  [::1]'],
    [{ 'service.peer.name': 'bank', 'server.address': '10.0.0.1' }, 'request  bank'],
    [{ 'server.address': '', 'http.host': 'a\nb' }, 'request  a b'],
    [{ 'server.address': 7 }, ''],
    [{ 'server.address': 'x\0y' }, ''],
    [{ other: 'x' }, ''],
    [{}, ''],
  ])('with %j is "%s"', (attributes, expected) => {
    expect(peersOf(3, attributes).map(peer => peer.replaceAll('\n', ' '))).toEqual([expected])
  })

  it('is cut, and that of each span of a batch is its own', () => {
    const long = 'é'.repeat(300)
    const [cut, ...others] = peersOf(
      3,
      { 'server.address': long },
      { 'server.address': 'a' },
      {},
      { 'server.address': 'b' },
    )
    expect(Buffer.byteLength(cut ?? '', 'latin1')).toBe('request\n\n'.length + 256)
    expect(others).toEqual(['request\n\na', '', 'request\n\nb'])
  })
})

it('is of producers and consumers too, and of no other span', () => {
  const attributes = { 'server.address': 'a' }
  expect([1, 2, 3, 4, 5].map(kind => peersOf(kind, attributes)[0])).toEqual(['', '', ...Array(3).fill('request\n\na')])
})
