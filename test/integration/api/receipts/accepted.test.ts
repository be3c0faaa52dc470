import { describe, expect, it } from 'vitest'
import { digestOf, entryOf, mapOf } from '../../../support/clients/release-client.ts'
import { call } from '../../../support/services/api.ts'
import {
  api,
  ask,
  browse,
  build,
  expectOneRowEach,
  LINE,
  publicKey,
  receiptOf,
  release,
  type Sent,
  secretKey,
  settled,
  span,
  startWorkers,
  token,
  uploadChunk,
} from './fixture.ts'

describe('an accepted request', () => {
  it('is queued until a worker takes it and then stored, as seen by its keys and by the workspace', async () => {
    const before = Date.now()
    const sent = await browse('POST /drain/v1/traces', span('first'))
    const secret = { bearer: secretKey }
    for (const credential of [undefined, secret, { bearer: token }]) {
      const receipt = await receiptOf(sent, credential)
      expect(receipt).toMatchObject({ status: 'queued', kind: 'traces' })
      expect(receipt.storedAt).toBeUndefined()
      expect(Math.abs(Date.parse(receipt.receivedAt) - before)).toBeLessThan(5_000)
    }
    const stored = await settled(sent)
    expect(stored).toMatchObject({ status: 'stored', kind: 'traces' })
    expect(Date.parse(stored.storedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(stored.receivedAt))
    for (const credential of [secret, { bearer: token }]) expect(await receiptOf(sent, credential)).toEqual(stored)
    const byQuery = await call(api.baseUrl, `GET /v3/receipts/${sent.receiptId}?public_key=${publicKey}`)
    expect(byQuery.body).toEqual({ receipt: stored })
  })

  it('has a receipt from every operation that enqueues, and is stored', async () => {
    startWorkers()
    const maps = `/v3/releases/${release}/source-maps`
    const map = mapOf('a')
    const octets = 'application/octet-stream'
    const sent: [kind: string, answer: Sent][] = [
      ['traces', await browse('POST /drain/v1/traces', span('a'))],
      ['logs', await browse('POST /drain/v1/logs', '{"resourceLogs":[]}')],
      ['metrics', await browse('POST /drain/v1/metrics', '{"resourceMetrics":[]}')],
      [
        'sessions',
        await browse(
          'POST /v3/session/identify',
          '{"sessionId":"s","identifier":"i","source":{"type":"custom","name":"n"}}',
        ),
      ],
      ['sessions', await browse('POST /v3/session', '{"sessionId":"s"}')],
      ['replay', await uploadChunk(0)],
      ['source-maps', await build(`PUT ${maps}?path=a.map&part=0`, map, octets)],
      ['source-maps', await build(`PUT ${maps}/upload?path=b.map`, map)],
      ['build-reports', await build(`POST /v3/releases/${release}/telemetry`, '{"upload":1}')],
    ]
    const files = ['a.map', 'b.map'].map(path => entryOf({ path, bytes: map }))
    const completion = JSON.stringify({ files, sourceFileCount: 1 })
    const complete = () => build(`POST ${maps}/complete`, completion)
    sent.push(['completions', await complete()])
    for (const [kind, answer] of sent) {
      expect(await receiptOf(answer)).toMatchObject({ kind })
      expect(await settled(answer)).toMatchObject({ kind, status: 'stored' })
    }
    expect(new Set(sent.map(([, { receiptId }]) => receiptId)).size).toBe(sent.length)

    // A request that is not enqueued has no receipt.
    const without = [
      await complete(),
      await build(`PUT ${maps}?path=a.map&part=0`, map, octets),
      await browse('POST /v3/replay/upload/session-1', LINE),
      await browse('POST /drain/v1/traces', '', { 'content-type': 'application/x-protobuf' }),
      await build(`POST ${maps}/sign`, JSON.stringify({ files: [{ path: 'c', size: 1, hash: digestOf(map) }] })),
    ]
    for (const { status, receiptId } of without) expect({ status, receiptId }).toEqual({ status: 200, receiptId: null })
  })

  it('has a receipt that names the fields that are left out of an identity or heartbeat', async () => {
    const person = { sessionId: 's', identifier: 'i', source: { type: 'custom', name: 'n' } }
    const sent = [
      { path: '/v3/session/identify', body: { ...person, email: '', name: null, fpHash: null } },
      { path: '/v3/session/identify', body: { ...person, deviceId: null } },
      { path: '/v3/session', body: { sessionId: 's', deviceId: 'd' } },
    ]
    const answers = sent.map(({ path, body }) => browse(`POST ${path}`, JSON.stringify(body)))
    const receipts = await Promise.all(answers.map(async answer => settled(await answer)))
    expect(
      receipts.map(({ status, leftOut, rejected, objectKey }) => ({ status, leftOut, rejected, objectKey })),
    ).toEqual([
      {
        status: 'stored',
        leftOut: [
          { field: 'email', reason: 'must be an email address' },
          { field: 'name', reason: 'must be a string' },
        ],
      },
      { status: 'stored' },
      { status: 'stored', leftOut: [{ field: 'deviceId', reason: 'must be a UUID' }] },
    ])
  })

  it('has a receipt that says if its release is unknown', async () => {
    const map = mapOf('unknown')
    const of = (slug: string) => [
      build(`POST /v3/releases/${slug}/telemetry`, '{"upload":1}'),
      build(`PUT /v3/releases/${slug}/source-maps?path=u.map&part=0`, map, 'application/octet-stream'),
      build(`PUT /v3/releases/${slug}/source-maps/upload?path=v.map`, map),
    ]
    const receiptsOf = async (slug: string) =>
      Promise.all(of(slug).map(async answer => (await settled(await answer)).rejected))
    const unknown = [{ reason: 'unknown_release', count: 1 }]
    expect(await receiptsOf('rel_typo')).toEqual([unknown, unknown, unknown])
    expect(await receiptsOf(release)).toEqual([undefined, undefined, undefined])
  })

  it('shows its receipt to pages of any origin', async () => {
    const headers = { origin: 'https://shop.example' }
    const sent = await browse('POST /v3/session', '{"sessionId":"s"}', headers)
    expect(sent.headers.get('access-control-expose-headers')).toBe(
      'Retry-After, WWW-Authenticate, x-receipt-id, x-request-id',
    )
    const answer = await ask(sent.receiptId, { headers: { ...headers, 'x-service-public-key': publicKey } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.example')
  })

  it('is in exactly one row of the log, together with the others of its group commit', async () => {
    startWorkers()
    const sent = await Promise.all(Array.from({ length: 60 }, (_, i) => browse('POST /drain/v1/traces', span(`${i}`))))
    const receipts = await Promise.all(sent.map(request => settled(request)))
    expect(receipts.every(({ status }) => status === 'stored')).toBe(true)
    await expectOneRowEach(sent)
  })
})
