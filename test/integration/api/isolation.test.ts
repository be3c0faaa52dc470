import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { createReleaseClient, entryOf } from '../../support/clients/release-client.ts'
import { type Answer, call, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../../support/services/workload-issuer.ts'
import { until } from '../../support/until.ts'
import { type BadCredential, makeBadCredentials } from '../../support/workspaces/bad-credentials.ts'
import {
  CREDENTIAL_KINDS,
  type CredentialKind,
  GIVEN_IDS,
  INTRUDER,
  ISOLATION_MATRIX,
  type MatrixRow,
  type Things,
} from '../../support/workspaces/isolation-matrix.ts'
import { absentThings, makeTenant, mapsOf, type Tenant } from '../../support/workspaces/tenant.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`

let redis: Redis
let directory: Directory
let database: TestDatabase
let edge: TestEdge
let api: TestApi
let pools: TestPools
let mine: Tenant
let theirs: Tenant
let theirView: string
let bad: BadCredential[]
let workloads: WorkloadIssuer
const absent = absentThings()
const isRead = ({ operation }: MatrixRow) => operation.startsWith('GET ')
/** Everything that a user of the workspace may read. */
const READS = ISOLATION_MATRIX.filter(row => isRead(row) && row.takes.includes('sessionToken'))

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  directory = createDirectory(redis)
  database = await createTestDatabase(services.clickhouseUrl, `isolation_${process.pid}`)
  workloads = await startWorkloadIssuer()
  const { s3 } = services
  const objectStore = s3Settings(s3)
  edge = await startEdge(redisUrl, objectStore)
  api = await startApi({ ...services, redisUrl }, database.name, {
    ...workloads.settings,
    ...objectStore,
  })
  pools = startPools(
    [
      ...([
        'traces',
        'logs',
        'metrics',
        'sessions',
        'replay',
        'replay-chunks',
        'source-maps',
        'completions',
        'build-reports',
        'exceptions',
        'span-stats',
      ] as const),
      ...(['receipts', 'dead-letters', 'dead-letter-index'] as const),
    ],
    { ...services, redisUrl },
    database.name,
  )
  const tenantDeps = {
    redisUrl,
    apiUrl: api.baseUrl,
    edgeUrl: edge.baseUrl,
    signWorkloadToken: (slug: string) => workloads.sign({ org: slug }),
  }
  mine = await withLetter(await makeTenant(tenantDeps))
  theirs = await withLetter(await makeTenant(tenantDeps))
  // Statistics of spans are stored 12 s after others at the latest.
  const areStored = async () => (await isStored(mine)) && (await isStored(theirs))
  await until('the data of both workspaces is stored', areStored, { deadlineMs: 60_000 })
  for (const tenant of [mine, theirs]) await commentTwice(tenant)
  theirView = await viewOf(theirs)
  bad = await makeBadCredentials(directory, mine, workloads)
})

afterAll(async () => {
  await pools?.stop()
  await api?.stop()
  await edge?.stop()
  await database?.drop()
  redis?.disconnect()
  await workloads?.stop()
})

/** Waits until both dead letters of a tenant are indexed, and names one. */
async function withLetter(tenant: Tenant): Promise<Tenant> {
  let letterId = ''
  await until('the dead letters are indexed', async () => {
    const { body } = await call(api.baseUrl, 'GET /v3/dead-letters', { bearer: tenant.credentials.sessionToken })
    const { deadLetters } = body as { deadLetters: { id: string }[] }
    letterId = deadLetters[0]?.id ?? ''
    return deadLetters.length === 2
  })
  return { ...tenant, things: { ...tenant.things, letterId } }
}

/** A list of a finding's activity shows two entries, so that it has a second page. */
async function commentTwice({ workspaceId, things, credentials }: Tenant): Promise<void> {
  for (const text of [workspaceId, 'again']) {
    const request = { bearer: credentials.sessionToken, body: { text } }
    const { status } = await call(api.baseUrl, `POST /v3/findings/${things.findingId}/comments`, request)
    expect(status).toBe(201)
  }
}

/** The edge and the API; an operation that both mount may be sent to either. */
function processOf({ operation }: MatrixRow): { baseUrl: string } {
  return edge.routes.some(({ method, path }) => `${method} ${path}` === operation) ? edge : api
}

/** Fields of responses that show whether everything has been stored. */
interface Shown {
  readonly findings?: unknown[]
  readonly traces?: unknown[]
  readonly spans?: number
  readonly logs?: unknown[]
  readonly metrics?: unknown[]
  readonly keys?: unknown[]
  readonly chunks?: unknown[]
  readonly sessions?: unknown[]
  readonly release?: { readonly buildReports: unknown[] }
  readonly receipt?: { readonly status: string }
}

/** Returns whether a user of the workspace sees everything that was sent for it. */
async function isStored({ things, credentials }: Tenant): Promise<boolean> {
  const answers = await Promise.all(READS.map(row => ask(row, credentials.sessionToken, things)))
  const shown = (operation: string): Shown =>
    answers[READS.findIndex(row => row.operation === operation)]?.body as Shown
  return (
    answers.every(({ status }) => status === 200) &&
    shown('GET /v3/findings').findings?.length === 2 &&
    shown('GET /v3/findings/:findingId/traces').traces?.length === 2 &&
    shown('GET /v3/logs').logs?.length === 4 &&
    shown('GET /v3/sessions').sessions?.length === 2 &&
    shown('GET /v3/services/:name').spans === 4 &&
    shown('GET /v3/metrics').metrics?.length === 2 &&
    shown('GET /v3/usage/keys').keys?.length === 2 &&
    shown('GET /v3/sessions/:sessionId/replay').chunks?.length === 2 &&
    shown('GET /v3/releases/:releaseSlug').release?.buildReports.length === 1 &&
    shown('GET /v3/receipts/:receiptId').receipt?.status === 'stored'
  )
}

/** Builds the headers of a credential; a plain text is a bearer token. */
function ask(
  row: MatrixRow,
  credential: { kind: CredentialKind; value: string } | string | undefined,
  things: Things,
  query = '',
): Promise<Answer> {
  const { path, body, headers } = row.request(things, query)
  const isPublicKey = typeof credential === 'object' && credential.kind === 'publicKey'
  const value = typeof credential === 'object' ? credential.value : credential
  return call(processOf(row).baseUrl, `${row.operation.split(' ')[0]} ${path}`, {
    bearer: isPublicKey ? undefined : value,
    body,
    headers: { ...headers, ...(isPublicKey && value !== undefined && { 'x-service-public-key': value }) },
  })
}

/**
 * Returns a response without its time and without values that differ between any two calls. The ids in a list that
 * names none in its path are those that the caller has chosen itself; they stay.
 */
function comparable(row: MatrixRow, { status, headers, body }: Answer, things: Things) {
  const ids = Object.values(things)
  const asked = isRead(row) ? ids.filter(id => row.request(things, '').path.includes(id)) : ids
  const plain = (text: string) =>
    asked
      .reduce((rest, id) => rest.replaceAll(id, '<asked>'), text)
      .replaceAll(/\brct_[a-z2-7]{44}_/g, '<receipt>')
      .replaceAll(/\b(srf|key|ers)_[0-9a-f]{20}\b/g, '<id>')
      .replaceAll(/"subjectHash":"[0-9a-f]{64}"/g, '<hash>')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(/X-Amz-(Date|Credential|Signature)=[^&"]+/g, '<signature>')
      .replaceAll(/"waitingSeconds\\?":\{[^}]*\}/g, '<waits>')
  const text = plain(JSON.stringify(body, withoutProgress))
  const changing = ['date', 'x-request-id', ...(text.includes('<waits>') ? ['content-length'] : [])]
  const kept = [...headers].filter(([name]) => !changing.includes(name)).map(([name, value]) => [name, plain(value)])
  return { status, headers: kept, text }
}

/** Watermarks, usage and rates, which change with every request of the same workspace. */
const CHANGING = new Set([
  ...['readAt', 'settledBefore', 'oldestAgeSeconds', 'workBytes', 'usage', 'requests', 'bytes', 'rates'],
])

/** Leaves out what changes with every request of the same workspace. */
function withoutProgress(name: string, value: unknown): unknown {
  return CHANGING.has(name) ? undefined : value
}

/** Reads everything that a user of the workspace sees, and whether its keys work. */
async function viewOf({ things, credentials }: Tenant): Promise<string> {
  const reads = READS.map(async row => {
    const { status, body } = await ask(row, credentials.sessionToken, things)
    return { operation: row.operation, status, body }
  })
  const uses = [
    call(edge.baseUrl, 'POST /v3/session', {
      body: { sessionId: 'elsewhere' },
      headers: { 'x-service-public-key': credentials.publicKey },
    }),
    // After the check of the key the request fails for another reason, so that nothing is changed.
    call(edge.baseUrl, 'POST /v3/releases', { bearer: credentials.secretKey, body: {} }),
    call(api.baseUrl, 'GET /v3/surfaces', { bearer: credentials.workspaceKey }),
  ]
  const statuses = (await Promise.all(uses)).map(({ status }) => status)
  return JSON.stringify([...(await Promise.all(reads)), statuses], withoutProgress, 1)
}

/** Texts that no response to the other workspace may contain. */
const idsOf = ({ workspaceId, things }: Tenant) => [workspaceId, ...GIVEN_IDS.map(name => things[name])]
const asFor = (row: MatrixRow, kind: CredentialKind | 'none', answer: Answer) => ({
  operation: row.operation,
  kind,
  ...answer,
})

/** Problem of a credential that is not accepted; docs/api/otlp.md#drain has codes only for internal errors. */
function refusalCode({ operation, takes }: MatrixRow, kind: CredentialKind): string {
  if (operation.includes('/drain/')) return '{"message":'
  if (operation.includes(' /v1/')) return '{"code":16,'
  return kind === 'publicKey' && takes.includes(kind) ? '"AUTH_PK_INVALID"' : '"AUTH_MISSING"'
}

/** Ids of the other workspace, all at once and one by one among ids of the caller, each paired with ids that do not exist. */
function* foreignThings(row: MatrixRow): Generator<{ foreign: Things; nowhere: Things; isInPath: boolean }> {
  yield { foreign: theirs.things, nowhere: absent, isInPath: true }
  const own = row.request(mine.things, '')
  for (const name of Object.keys(absent) as (keyof Things)[]) {
    const foreign = { ...mine.things, [name]: theirs.things[name] }
    const asked = row.request(foreign, '')
    if (JSON.stringify(asked) === JSON.stringify(own)) continue
    yield { foreign, nowhere: { ...mine.things, [name]: absent[name] }, isInPath: asked.path !== own.path }
  }
}

describe('two workspaces', () => {
  it('have a row in the matrix for every mounted operation and for no other', () => {
    const mounted = new Set([...edge.routes, ...api.routes].map(({ method, path }) => `${method} ${path}`))
    const inMatrix = new Set(ISOLATION_MATRIX.map(({ operation }) => operation))
    expect([...inMatrix].sort()).toEqual([...mounted].sort())
  })

  it('see their own data', () => {
    const views = JSON.parse(theirView) as { operation: string; status: number; body: unknown }[]
    expect(views.pop()).toEqual([200, 400, 200])
    for (const { operation, status } of views) expect({ operation, status }).toEqual({ operation, status: 200 })
    for (const id of Object.values(theirs.things)) expect(theirView).toContain(id)
    expect(theirView).not.toContain(mine.workspaceId)
  })

  describe.each(ISOLATION_MATRIX)('$operation', row => {
    it('returns only that a credential is required when there is none', async () => {
      for (const things of [mine.things, theirs.things, absent]) {
        const answer = await ask(row, undefined, things)
        expect(asFor(row, 'none', answer)).toMatchObject({ status: 401 })
        expect(comparable(row, answer, things)).toEqual(comparable(row, await ask(row, undefined, absent), absent))
      }
    })

    it('refuses a malformed, unknown, revoked or expired credential', async () => {
      for (const { kind, what, value } of bad) {
        const nowhere = comparable(row, await ask(row, { kind, value }, absent), absent)
        expect({ what, kind, ...nowhere }).toMatchObject({ status: 401 })
        expect(nowhere.text).toContain(refusalCode(row, kind))
        for (const { things } of [mine, theirs]) {
          const answer = await ask(row, { kind, value }, things)
          expect(comparable(row, answer, things)).toEqual(nowhere)
          expect(JSON.stringify(answer.body)).not.toContain(value)
        }
      }
    })

    it('refuses a credential of another kind', async () => {
      for (const kind of CREDENTIAL_KINDS.filter(other => !row.takes.includes(other))) {
        const value = mine.credentials[kind]
        const nowhere = comparable(row, await ask(row, { kind, value }, absent), absent)
        // A workload is known but lacks the permission; it learns nothing about another workspace.
        const statuses = kind === 'workload' && row.takes.includes('sessionToken') ? [403, 404] : [401]
        for (const { things } of [mine, theirs]) {
          const answer = await ask(row, { kind, value }, things)
          expect(statuses, `${kind} ${answer.status}`).toContain(answer.status)
          if (things === theirs.things) expect(comparable(row, answer, things)).toEqual(nowhere)
        }
      }
    })

    it.runIf(row.takes.includes('sessionToken'))(
      'gives a user who is not a member the answer of a missing resource',
      async () => {
        const sub = `user_${mine.workspaceId}`
        for (const { things } of [mine, theirs]) {
          const answer = await ask(row, await signToken({ org: theirs.things.slug, sub }), things)
          expect(asFor(row, 'sessionToken', answer)).toMatchObject({ status: 404 })
          const nowhere = await ask(row, await signToken({ org: absent.slug, sub }), absent)
          expect(comparable(row, answer, things)).toEqual(comparable(row, nowhere, absent))
        }
      },
    )

    it.runIf(row.foreign === 'absent')('shows what is of the other as if it were nowhere', async () => {
      for (const kind of row.takes) {
        const credential = { kind, value: mine.credentials[kind] }
        for (const { foreign, nowhere, isInPath } of foreignThings(row)) {
          const answer = await ask(row, credential, foreign)
          if (isInPath) expect(asFor(row, kind, answer)).toMatchObject({ status: 404 })
          expect([401, 403], asFor(row, kind, answer).operation).not.toContain(answer.status)
          expect(comparable(row, answer, foreign)).toEqual(
            comparable(row, await ask(row, credential, nowhere), nowhere),
          )
        }
      }
    })

    it.runIf(isRead(row))('shows nothing of the other in a list, nor by its cursors', async () => {
      for (const kind of row.takes) {
        const first = await ask(row, { kind, value: theirs.credentials[kind] }, theirs.things, 'limit=1')
        const cursor = /"nextCursor":"([^"]+)"/.exec(JSON.stringify(first.body))?.[1]
        const isList = row.request(theirs.things, 'limit=1').path.includes('limit=1')
        expect(cursor !== undefined, 'a list of two has a second page').toBe(isList)
        for (const query of ['', ...(cursor ? [`cursor=${cursor}`] : [])]) {
          const answer = await ask(row, { kind, value: mine.credentials[kind] }, mine.things, query)
          expect(query ? [200, 400] : [200], asFor(row, kind, answer).operation).toContain(answer.status)
          for (const id of idsOf(theirs)) expect(JSON.stringify(answer.body)).not.toContain(id)
        }
      }
    })

    it.runIf(!isRead(row))('leaves the other as it was', async () => {
      expect(await viewOf(theirs)).toBe(theirView)
    })
  })

  describe.each(ISOLATION_MATRIX.filter(({ foreign }) => foreign === 'own'))('$operation', row => {
    it('treats ids of the other workspace like ids of the caller that do not exist', async () => {
      for (const kind of row.takes) {
        const credential = { kind, value: mine.credentials[kind] }
        for (const { foreign, nowhere } of foreignThings(row)) {
          const compare = async () => {
            const answer = await ask(row, credential, foreign)
            expect([200, 201], asFor(row, kind, answer).operation).toContain(answer.status)
            const { text, ...rest } = comparable(row, answer, foreign)
            for (const id of idsOf(theirs)) expect(text).not.toContain(id)
            expect({ text, ...rest }).toEqual(comparable(row, await ask(row, credential, nowhere), nowhere))
          }
          // Rows written earlier may enter a list between two responses.
          await (isRead(row) ? vi.waitFor(compare) : compare())
        }
      }
    })

    it.runIf(!isRead(row))('leaves the other as it was', async () => {
      expect(await viewOf(theirs)).toBe(theirView)
    })
  })

  it('leave the other workspace unchanged after everything that was tried has been stored', async () => {
    const rowOf = (operation: string) => READS.find(row => row.operation === operation) as MatrixRow
    const read = async (operation: string, things: Things) =>
      JSON.stringify((await ask(rowOf(operation), mine.credentials.sessionToken, things)).body)
    // Data sent with the ids of its session and trace has arrived, as data of the sender.
    await until('the written data is stored', async () => {
      const session = await read('GET /v3/sessions/:sessionId', { ...mine.things, sessionId: theirs.things.sessionId })
      const findings = await read('GET /v3/findings', mine.things)
      const reports = await database.rows("SELECT 1 FROM build_reports WHERE result = 'pipeline_failed'")
      const isShown = session.includes(INTRUDER) && session.includes('"replay":{') && findings.includes(INTRUDER)
      return isShown && reports.length > 0
    })
    expect(await viewOf(theirs)).toBe(theirView)
  })

  it('let the other workspace complete the upload that it had begun', async () => {
    const { workspaceId, things, credentials } = theirs
    const client = createReleaseClient(edge.baseUrl, credentials.secretKey)
    const { status, body } = await client.complete(
      things.releaseSlug,
      mapsOf(workspaceId).map(map => entryOf(map)),
    )
    expect({ status, body }).toEqual({ status: 200, body: { ok: true, fileCount: 3 } })
  })
})
