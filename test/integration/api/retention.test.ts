import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { at, insertRows, ownerColumns } from '../../support/workspaces/session-rows.ts'

const services = sharedServices()
const DATABASE = `retention_reads_${process.pid}`
const RUN = randomBytes(5).toString('hex')
const SHORT = { id: `ws_${RUN}1`, slug: `short-${RUN}` }
const OTHER = { id: `ws_${RUN}2`, slug: `other-${RUN}` }
const READER = { id: SHORT.id, slug: SHORT.slug, userId: 'reader', permissions: ['org:telemetry:read'] } as const

/** Clock of the API. Reads apply a changed retention after ten seconds. */
let clock = Date.now()
let client: ClickHouseClient
let api: TestApi

beforeAll(async () => {
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  for (const workspace of [SHORT, OTHER, READER]) await putWorkspace(services.redisUrl, workspace)
  api = await startApi(services, DATABASE, {}, () => clock)
})
afterAll(async () => {
  await api?.stop()
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

const tokenOf = ({ slug }: { slug: string }, sub = 'user_1') => signToken({ org: slug, sub })
async function ask(operation: string, workspace: { slug: string }, body?: unknown, sub?: string) {
  return call(api.baseUrl, operation, { bearer: await tokenOf(workspace, sub), body })
}
const cli = (words: string[]) =>
  runDirectoryCli(words, { env: { DIRECTORY_REDIS_URL: services.redisUrl, RETENTION_DAYS: '30' } })

it('is set by API and by command, and what is absent has the default', async () => {
  const before = await ask('GET /v3/retention', OTHER)
  expect(before).toMatchObject({ status: 200, body: { retention: { maxDays: 30 } } })
  const put = await ask('PUT /v3/retention', OTHER, { traces: 14, logs: null, releases: 400 })
  const kinds = { traces: { days: 14, isDefault: false }, logs: { days: 30, isDefault: true } }
  expect(put).toMatchObject({ status: 200, body: { retention: { kinds } } })
  const set = await cli(['retention', 'set', '--workspace', OTHER.slug, '--dead-letters', '3', '--traces', 'default'])
  expect(set).toMatchObject({ code: 0, stderr: '' })
  expect(set.stdout).toMatch(/^dead-letters +3 +workspace$/m)
  expect(set.stdout).toMatch(/^traces +30 +installation$/m)
  const after = await ask('GET /v3/retention', OTHER)
  const expected = { 'dead-letters': { days: 3, isDefault: false }, releases: { days: 400, isDefault: false } }
  expect(after.body).toMatchObject({ retention: { kinds: { ...expected, traces: { days: 30, isDefault: true } } } })
  const shown = await cli(['retention', 'show', '--workspace', OTHER.slug, '--json'])
  expect(JSON.parse(shown.stdout)).toMatchObject({ workspace: OTHER.slug, maxDays: 30, kinds: expected })
  expect((await ask('PUT /v3/retention', OTHER, {})).status).toBe(200)
})

it('is refused over that of the installation, for unknown kinds and without the permission', async () => {
  const over = await ask('PUT /v3/retention', SHORT, { replay: 31 })
  expect(over.status).toBe(400)
  expect(JSON.stringify(over.body)).toContain('replay must be at most 30 days')
  for (const body of [{ replay: 0 }, { replay: 1.5 }, { replay: '7' }, { spans: 7 }]) {
    expect((await ask('PUT /v3/retention', SHORT, body)).status, JSON.stringify(body)).toBe(400)
  }
  const command = await cli(['retention', 'set', '--workspace', SHORT.slug, '--logs', '31'])
  expect(command).toMatchObject({ code: 2, stdout: '' })
  expect((await ask('GET /v3/retention', SHORT, undefined, 'reader')).status).toBe(200)
  expect((await ask('PUT /v3/retention', SHORT, {}, 'reader')).status).toBe(403)
})

it('of sessions is refused below that of the data which an erasure finds by them', async () => {
  const week = { traces: 7, logs: 7, findings: 7, replay: 7, 'dead-letters': 7 }
  for (const kind of Object.keys(week)) {
    // Absent, so that it has the default.
    const body = { ...week, sessions: 7, [kind]: null }
    const answer = await ask('PUT /v3/retention', OTHER, body)
    expect(answer.status, kind).toBe(400)
    expect(JSON.stringify(answer.body)).toContain(
      `sessions must be at least 30 days, which is how long ${kind} are kept`,
    )
  }
  expect((await ask('PUT /v3/retention', OTHER, { ...week, sessions: 6 })).status).toBe(400)
  expect((await ask('PUT /v3/retention', OTHER, { ...week, sessions: 7, metrics: 30 })).status).toBe(200)
  for (const change of [
    ['--sessions', '6'],
    ['--replay', '8'],
    ['--logs', 'default'],
  ]) {
    const refused = await cli(['retention', 'set', '--workspace', OTHER.slug, ...change])
    expect(refused, change.join(' ')).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('sessions must be at least')
  }
  const kept = { sessions: { days: 7 }, replay: { days: 7 }, logs: { days: 7 } }
  expect((await ask('GET /v3/retention', OTHER)).body).toMatchObject({ retention: { kinds: kept } })
  const both = await cli(['retention', 'set', '--workspace', OTHER.slug, '--replay', '8', '--sessions', '8'])
  expect(both).toMatchObject({ code: 0, stderr: '' })
  // As after the operator has raised RETENTION_DAYS: the defaults are longer, and sessions with them.
  const raised = await runDirectoryCli(['retention', 'set', '--workspace', SHORT.slug, '--sessions', '30'], {
    env: { DIRECTORY_REDIS_URL: services.redisUrl, RETENTION_DAYS: '30' },
  })
  expect(raised).toMatchObject({ code: 0 })
  const shown = await runDirectoryCli(['retention', 'show', '--workspace', SHORT.slug], {
    env: { DIRECTORY_REDIS_URL: services.redisUrl, RETENTION_DAYS: '60' },
  })
  expect(shown.stdout).toMatch(/^sessions +60 +workspace$/m)
  for (const workspace of [SHORT, OTHER]) expect((await ask('PUT /v3/retention', workspace, {})).status).toBe(200)
})

it('hides from reads what is older, before anything is deleted, and shows it to another workspace', async () => {
  const now = clock
  const old = now - 10 * DAY_MS
  const traceId = 'c'.repeat(32)
  const findingId = `fnd_${'b'.repeat(26)}`
  for (const { id: workspaceId } of [SHORT, OTHER]) {
    const rows = [
      { sessionId: 'old', receivedAt: old },
      { sessionId: 'new', receivedAt: now },
    ]
    for (const { sessionId, receivedAt } of rows) {
      const columns = ownerColumns({ workspaceId, surfaceId: 'srf_1', sessionId })
      await insertRows(client, 'session_heartbeats', [{ ...columns, received_at: at(receivedAt) }])
    }
    await insertExceptions(client, [
      { workspaceId, findingId, traceId, receivedAt: old },
      { workspaceId, findingId, traceId, receivedAt: now },
    ])
    await insertSpans(client, [
      { workspaceId, traceId, spanId: '00000000000000a1', receivedAt: old },
      { workspaceId, traceId, spanId: '00000000000000a2', receivedAt: now },
    ])
  }
  const view = async (workspace: { slug: string }) => {
    const session = await ask('GET /v3/sessions/old', workspace)
    const kept = await ask('GET /v3/sessions/new', workspace)
    const finding = await ask(`GET /v3/findings/${findingId}`, workspace)
    const trace = await ask(`GET /v3/findings/${findingId}/traces/${traceId}`, workspace)
    const { occurrenceCount } = (finding.body as { finding: { occurrenceCount: number } }).finding
    const { spans } = trace.body as { spans: unknown[] }
    return { session: session.status, kept: kept.status, occurrences: Number(occurrenceCount), spans: spans.length }
  }
  const everything = { session: 200, kept: 200, occurrences: 2, spans: 2 }
  expect(await view(SHORT)).toEqual(everything)
  const week = { traces: 7, logs: 7, findings: 7, replay: 7, 'dead-letters': 7 }
  expect((await ask('PUT /v3/retention', SHORT, { ...week, sessions: 10 })).status).toBe(200)
  clock += 10_000
  expect(await view(SHORT)).toEqual({ session: 404, kept: 200, occurrences: 1, spans: 1 })
  expect(await view(OTHER)).toEqual(everything)
  const rows = await client.query({ query: `SELECT count() AS n FROM spans`, format: 'JSONEachRow' })
  expect(await rows.json()).toEqual([{ n: 4 }])
  // A day is kept as long as its age in whole days is less than the retention.
  expect((await ask('PUT /v3/retention', SHORT, { ...week, sessions: 11 })).status).toBe(200)
  clock += 10_000
  expect((await ask('GET /v3/sessions/old', SHORT)).status).toBe(200)
})
