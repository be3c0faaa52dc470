import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ActLinks } from '../../../alerts/delivery/act-links.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { findingActivityPageSchema } from '../../../schemas/http/findings/work.ts'
import type { Receiver } from '../../../schemas/records/alerts.ts'
import { DAY_MS, DAY_S } from '../../../schemas/units.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import {
  call,
  createDatabase,
  DELIVERY_KEY,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_acts_${process.pid}`
const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`
const EARLIER_KEY = randomBytes(32).toString('base64')
const HOSTILE = '</h1><script>alert(1)</script>\u202e"\' & <img src=x onerror=alert(1)>'

const RECEIVER = `rcv_${'1'.repeat(20)}`
const receiver = (more: Partial<Receiver> = {}): Receiver => ({
  ...{ id: RECEIVER, name: 'on-call <b>', channel: 'slack', address: 'https://hooks.slack.example', sealed: 'sealed' },
  ...{ createdAt: new Date().toISOString(), ...more },
})
let number = 0
/** A finding of its own for each test. */
const nextId = () =>
  `fnd_${'q'.repeat(24)}${'abcdefghijklmnopqrstuvwxyz'[Math.floor(number / 26)]}${'abcdefghijklmnopqrstuvwxyz'[number++ % 26]}`

describe('the links of messages', () => {
  let redis: Redis
  let directory: Directory
  let client: ClickHouseClient
  let api: TestApi
  let token: string
  /** How far the clock of the API is ahead. */
  let aheadMs = 0
  const now = () => Date.now() + aheadMs

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    directory = createDirectory(redis)
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex' })
    const settings = { DELIVERY_KEY_PREVIOUS: EARLIER_KEY }
    api = await startApi({ ...services, redisUrl }, DATABASE, settings, now)
    token = await signToken({ exp: Math.floor(Date.now() / 1_000) + 30 * DAY_S })
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
    redis?.disconnect()
  })
  beforeEach(async () => {
    aheadMs = 0
    await setReceivers([receiver()])
  })

  async function setReceivers(receivers: Receiver[], workspaceId = 'ws_1'): Promise<void> {
    const revision = (await directory.alerts(workspaceId))?.revision ?? 0
    const author = { by: null, now: Date.now() }
    await directory.replaceAlerts({ workspaceId, revision, receivers, rules: [] }, author)
  }

  async function occur(findingId: string, more: object = {}): Promise<string> {
    const message = HOSTILE
    await insertExceptions(client, [{ findingId, traceId: randomBytes(16).toString('hex'), message, ...more }])
    return findingId
  }

  const tokenFor = (findingId: string, { key = DELIVERY_KEY, workspaceId = 'ws_1', madeAtMs = now() } = {}) =>
    new URL(
      new ActLinks({ key }, 'https://x.example').linkTo({ workspaceId, findingId, receiverId: RECEIVER }, madeAtMs) ??
        '',
    ).searchParams.get('token') ?? ''
  const open = (of: string) => call(api.baseUrl, `GET /console/act?token=${encodeURIComponent(of)}`)
  const press = (of: string, act: string, headers: Record<string, string> = {}) =>
    call(api.baseUrl, 'POST /console/act', {
      body: new URLSearchParams({ token: of, act }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  const statusOf = async (id: string) => {
    const { body } = await call(api.baseUrl, `GET /v3/findings/${id}`, { bearer: token })
    return (body as { finding: { status: string; ignoredUntil?: string } }).finding
  }
  const activityOf = async (id: string) => {
    const { body } = await call(api.baseUrl, `GET /v3/findings/${id}/activity`, { bearer: token })
    return findingActivityPageSchema.parse(body).activity
  }

  it('show the finding with three buttons, escaped, and change nothing', async () => {
    const id = await occur(nextId())
    const act = tokenFor(id)
    for (let i = 0; i < 3; i++) {
      const { status, body } = await open(act)
      expect(status).toBe(200)
      const html = String(body)
      expect(html.match(/<button[^>]*>/g)).toEqual(
        ['acknowledge', 'resolve', 'ignore'].map(
          value => `<button name="act" value="${value}" aria-describedby="${value}">`,
        ),
      )
      expect(html).toContain('<h1>TypeError: &lt;/h1&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; &amp; ')
      expect(html).toContain('from a message to on-call &lt;b&gt;')
      expect(html).not.toMatch(/<script|<img|\u202e/)
    }
    expect((await fetch(`${api.baseUrl}/console/act?token=${act}`, { method: 'HEAD' })).status).toBe(200)
    expect(await activityOf(id)).toEqual([])
    expect(await statusOf(id)).toMatchObject({ status: 'open' })
    expect(await directory.findingWork('ws_1', [id])).toEqual([undefined])
  })

  it('have pages that run, load, embed, cache and pass on nothing', async () => {
    const id = await occur(nextId())
    const pages = [await open(tokenFor(id)), await open('forged'), await press(tokenFor(id), 'resolve')]
    for (const { headers } of pages) {
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-robots-tag': 'noindex, nofollow',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
        ),
      })
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('set-cookie')).toBeNull()
    }
  })

  it('acknowledge, resolve and ignore once, in the name of the receiver', async () => {
    const by = { by: null, via: { receiver: 'on-call <b>' } }
    for (const [act, action, status, done, repeated] of [
      ['acknowledge', 'acknowledged', 'open', 'The finding is acknowledged.', 'The finding was acknowledged already.'],
      ['resolve', 'resolved', 'resolved', 'The finding is resolved.', 'The finding was resolved already.'],
      ['ignore', 'ignored', 'ignored', 'The finding is ignored for a week.', 'The finding was ignored already.'],
    ] as const) {
      const id = await occur(nextId())
      const of = tokenFor(id)
      expect(await press(of, act)).toMatchObject({ status: 200, body: expect.stringContaining(done) })
      expect(await activityOf(id)).toMatchObject([{ ...by, action }])
      expect(await statusOf(id)).toMatchObject({ status })
      expect(await press(of, act)).toMatchObject({ status: 200, body: expect.stringContaining(repeated) })
      expect(await activityOf(id)).toHaveLength(1)
    }
  })

  it('do it once when a button is pressed twice at the same time', async () => {
    for (const act of ['acknowledge', 'resolve', 'ignore']) {
      const id = await occur(nextId())
      const of = tokenFor(id)
      const pages = await Promise.all(Array.from({ length: 4 }, () => press(of, act)))
      expect(pages.filter(({ body }) => String(body).includes('already'))).toHaveLength(3)
      expect(await activityOf(id)).toHaveLength(1)
    }
  })

  it('resolve again what is back, ignore again what is open again, and acknowledge for each message', async () => {
    const id = await occur(nextId(), { serviceVersion: '1.0' })
    await press(tokenFor(id), 'resolve')
    await occur(id, { serviceVersion: '2.0', receivedAt: Date.now() + 5 })
    expect(await statusOf(id)).toMatchObject({ status: 'regressed' })
    expect(await press(tokenFor(id), 'resolve')).toMatchObject({ body: expect.stringContaining('is resolved') })
    await press(tokenFor(id), 'ignore')
    await press(tokenFor(id), 'acknowledge')
    aheadMs = 8 * DAY_MS
    expect(await statusOf(id)).toMatchObject({ status: 'open' })
    expect(await press(tokenFor(id), 'ignore')).toMatchObject({ body: expect.stringContaining('is ignored') })
    expect(await press(tokenFor(id), 'acknowledge')).toMatchObject({ body: expect.stringContaining('is acknowledged') })
    expect((await activityOf(id)).map(({ action }) => action).reverse()).toEqual([
      ...['resolved', 'resolved', 'ignored', 'acknowledged', 'ignored', 'acknowledged'],
    ])
  })

  it('are refused alike when they are forged, expired, of another workspace or of a receiver that is not there', async () => {
    const id = await occur(nextId())
    const own = tokenFor(id)
    expect((await open(tokenFor(id, { key: EARLIER_KEY }))).status).toBe(200)
    await setReceivers([receiver({ id: `rcv_${'2'.repeat(20)}` })], 'ws_2')
    const bad = [
      ...['', 'x', own.slice(0, -1), `${own}x`, own.replace('ws_1', 'ws_2'), 'a'.repeat(8_000)],
      tokenFor(id, { key: randomBytes(32).toString('base64') }),
      tokenFor(id, { madeAtMs: now() - 7 * DAY_MS }),
      // The same receiver is not one of this workspace, and this one has no record.
      ...[tokenFor(id, { workspaceId: 'ws_2' }), tokenFor(id, { workspaceId: 'ws_3' })],
    ]
    const pages = await Promise.all(bad.flatMap(of => [open(of), press(of.slice(0, 1_000), 'resolve')]))
    const receivers = [
      ...[
        [],
        [receiver({ disabled: { at: new Date().toISOString(), reason: 'gone' } })],
        [receiver({ actions: false })],
      ],
    ]
    for (const without of receivers) {
      await setReceivers(without)
      pages.push(await open(own), await press(own, 'resolve'))
    }
    expect(new Set(pages.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    expect(pages[0]).toMatchObject({ status: 404, body: expect.stringContaining('This link does not work') })
    expect(await activityOf(id)).toEqual([])
  })

  it('refuse other buttons, forms and lengths with a page', async () => {
    const id = await occur(nextId())
    const of = tokenFor(id)
    for (const act of ['', 'delete', 'toString', 'RESOLVE']) expect(await press(of, act)).toMatchObject({ status: 400 })
    const json = await press(of, 'resolve', { 'content-type': 'application/json' })
    const long = await press(of, 'resolve'.repeat(1_000))
    expect([json.status, long.status]).toEqual([415, 413])
    for (const { body, headers } of [json, long]) {
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(body).toContain('<h1>Nothing was done</h1>')
    }
    expect(await activityOf(id)).toEqual([])
  })

  it('lead to a finding after it was merged, and say if nothing of it is kept', async () => {
    const [stays, merged] = [await occur(nextId()), await occur(nextId())]
    await directory.mergeFindings('ws_1', async () => ({ into: stays, findingIds: [merged] }), {
      by: null,
      now: Date.now(),
    })
    await press(tokenFor(merged), 'resolve')
    expect(await statusOf(stays)).toMatchObject({ status: 'resolved' })
    expect(await open(tokenFor(nextId()))).toMatchObject({
      status: 404,
      body: expect.stringContaining('not kept any more'),
    })
  })
})
