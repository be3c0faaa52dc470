import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { insertNative } from '../../../../clickhouse/client.ts'
import { selectFinding } from '../../../../clickhouse/queries/findings/select-finding.ts'
import { selectFindingTraces } from '../../../../clickhouse/queries/findings/select-finding-traces.ts'
import { countOccurrences } from '../../../../clickhouse/queries/findings/select-finding-values.ts'
import type { Signal } from '../../../../schemas/queues/names.ts'
import { MINUTE_MS } from '../../../../schemas/units.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { createKnownRules } from '../../../../workers/exceptions/known-rules.ts'
import { createJsonTranscoder } from '../../../../workers/otlp/json/transcode-json.ts'
import { createLogsBatch } from '../../../../workers/otlp/logs/logs.ts'
import { createSpansBatch } from '../../../../workers/otlp/traces/spans.ts'
import { judgeFailures } from '../../../../workers/upkeep/failures/judge-failures.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { withExceptions } from '../../../support/oracles/with-exceptions.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
const database = await createTestDatabase(services.clickhouseUrl, `failures_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const redis = new Redis(`${services.redisUrl}/9`)
const directory = createDirectory(redis)
const transcoder = createJsonTranscoder()
let workspaceId = ''
let inserts = 0

beforeEach(async () => {
  await redis.flushdb()
  await redis.set(upkeepKeys.judged, JSON.stringify({ from: Date.now() - MINUTE_MS }))
  workspaceId = newId('ws')
})
afterAll(async () => {
  redis.disconnect()
  await clickhouse.close()
  await database.drop()
})

const TRACE = 'ab'.repeat(16)
const idOf = (name: string) => Buffer.from(name.padEnd(8, '\0')).toString('hex')
const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })
const exceptionOf = (type: string) => [attribute('exception.type', type), attribute('exception.message', 'no card')]

interface TestSpan {
  readonly parent?: string
  readonly exception?: string
  readonly hasFailed?: boolean
}

/** A span that is named like its id. */
function span(name: string, { parent, exception, hasFailed = exception !== undefined }: TestSpan = {}) {
  return {
    ...{ traceId: TRACE, spanId: idOf(name), name, startTimeUnixNano: '1790000000000000000' },
    ...(parent !== undefined && { parentSpanId: idOf(parent) }),
    ...(hasFailed && { status: { code: 2 } }),
    events: exception === undefined ? [] : [{ name: 'exception', attributes: exceptionOf(exception) }],
  }
}

const spans = (...all: readonly object[]) => ['traces', { resourceSpans: [{ scopeSpans: [{ spans: all }] }] }] as const
const log = (spanName: string, type: string) => {
  const record = { traceId: TRACE, spanId: idOf(spanName), attributes: exceptionOf(type) }
  return ['logs', { resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] }] as const
}

/** Stores an export as the workers do. */
async function send([signal, body]: readonly [Signal, object]): Promise<void> {
  const batch = withExceptions(signal === 'traces' ? createSpansBatch() : createLogsBatch())
  const read = transcoder.transcode(signal, Buffer.from(JSON.stringify(body)))
  if (!read.ok) throw new Error(read.reason)
  const source = { workspaceId, surfaceId: 'srf_1', receivedAtMs: Date.now() }
  expect(batch.append({ ...source, only: undefined } as never, read.message).ok).toBe(true)
  for (const { table, columns, block } of batch.tables()) {
    const deduplicationToken = `failures test ${inserts++}`
    await insertNative(clickhouse, { table, columns, block, deduplicationToken, timeoutMs: 20_000 })
  }
}

/** Judges everything that is stored now. `assertElected` may end it. */
async function judge(assertElected: () => Promise<void> = async () => {}): Promise<void> {
  const [stored] = await database.rows<{ at: string }>(
    `SELECT toUnixTimestamp64Milli(max(stored_at)) AS at FROM (
       SELECT stored_at FROM exceptions UNION ALL SELECT stored_at FROM failures)`,
  )
  const isBehind = async () => {
    await judgeFailures({
      redis,
      clickhouse,
      settledBeforeMs: async () => Date.now() + 1_000,
      assertElected,
      rules: createKnownRules(directory),
      behindMs: 0,
    })
    const { from } = JSON.parse((await redis.get(upkeepKeys.judged)) ?? '{}') as { from: number }
    return from > Number(stored?.at)
  }
  await until('everything is judged', isBehind)
}

/** Returns the counts of the findings by type, from both tables and as occurrences. */
async function counts(): Promise<Record<string, number>> {
  const of = `WHERE workspace_id = '${workspaceId}'`
  const rows = await database.rows<{ id: string; type: string; n: string; buckets: string }>(`
    SELECT (SELECT groupArray((variant_id, id)) FROM (
        SELECT variant_id, max(membership).2 AS id FROM finding_variants ${of} GROUP BY variant_id)) AS members,
      arrayFirst(m -> m.1 = variant_id, members).2 AS id, max(latest).type AS type, sum(occurrence_count) AS n,
      (SELECT groupArray((variant_id, n)) FROM (
        SELECT variant_id, sum(occurrence_count) AS n FROM finding_buckets ${of} GROUP BY variant_id)) AS all,
      arrayFirst(b -> b.1 = variant_id, all).2 AS buckets
    FROM findings ${of} GROUP BY variant_id ORDER BY type`)
  const found: Record<string, number> = {}
  for (const { id, type, n, buckets } of rows) {
    expect(buckets, type).toBe(n)
    const key = { workspaceId, findingIds: [id], variantIds: undefined }
    const finding = await selectFinding(clickhouse, key, AbortSignal.timeout(10_000))
    const traces = await selectFindingTraces(
      clickhouse,
      { ...key, limit: 5, after: undefined },
      AbortSignal.timeout(10_000),
    )
    expect(finding === undefined ? 0 : Number(finding.occurrenceCount), type).toBe(Number(n))
    expect(
      traces.reduce((sum, { occurrenceCount }) => sum + Number(occurrenceCount), 0),
      type,
    ).toBe(Number(n))
    const ever = { ...key, fromMs: 0, toMs: Date.now() + MINUTE_MS }
    expect(await countOccurrences(clickhouse, ever, AbortSignal.timeout(10_000)), type).toBe(Number(n))
    found[type] = (found[type] ?? 0) + Number(n)
  }
  return Object.fromEntries(Object.entries(found).filter(([, n]) => n > 0))
}

const CHECKOUT = [
  spans(span('page', { hasFailed: true })),
  spans(span('proxy', { parent: 'page' }), span('server', { parent: 'proxy', exception: 'CardError' })),
  spans(span('pay', { parent: 'server', exception: 'CardError' })),
  log('pay', 'CardError'),
]

describe('one failure', () => {
  it.each<[string, readonly (readonly [Signal, object])[], Record<string, number>]>([
    ['a span and its log record', [spans(span('a', { exception: 'E' })), log('a', 'E')], { E: 1 }],
    [
      'three ancestors',
      [
        spans(
          span('a', { exception: 'E' }),
          span('b', { parent: 'a', exception: 'E' }),
          span('c', { parent: 'b', exception: 'E' }),
        ),
      ],
      { E: 1 },
    ],
    [
      'three retries',
      [
        spans(
          span('a', { hasFailed: true }),
          ...['b', 'c', 'd'].map(name => span(name, { parent: 'a', exception: 'E' })),
        ),
      ],
      { E: 3 },
    ],
    ['a client, its server and an exception', CHECKOUT, { CardError: 1 }],
    [
      'a client and its server',
      [spans(span('GET'), span('5xx', { parent: 'GET', hasFailed: true })), spans(span('GET', { hasFailed: true }))],
      { '5xx': 1 },
    ],
  ])('counts once: %s', async (_, exports, expected) => {
    for (const one of exports) await send(one)
    await judge()
    expect(await counts()).toEqual(expected)
    await redis.del(upkeepKeys.judged)
    await judge()
    expect(await counts()).toEqual(expected)
  })

  it('counts once without the spans of its trace, if each span that it passed states it', async () => {
    const passed = { exception: 'E' }
    await send(spans(span('a', { hasFailed: true }), span('b', { parent: 'a', ...passed })))
    await send(spans(span('c', { parent: 'b', ...passed }), span('d', { parent: 'b', ...passed })))
    await send(log('c', 'E'))
    await clickhouse.command({ query: 'TRUNCATE TABLE spans' })
    await judge()
    expect(await counts()).toEqual({ E: 2 })
  })

  it('counts at once if it is an exception, and a failed span when it is judged', async () => {
    await send(spans(span('a', { exception: 'E' }), span('b', { hasFailed: true })))
    expect(await counts()).toEqual({ E: 1 })
    await judge()
    expect(await counts()).toEqual({ E: 1, b: 1 })
  })

  it('is grouped again if rules have changed since the failed span was stored', async () => {
    const author = { by: { userId: 'user_1', apiKeyId: null }, now: Date.now() }
    await send(spans(span('a', { hasFailed: true })))
    await judge()
    expect(await directory.isGrouped(workspaceId)).toBe(true)
    await send(spans(span('b', { hasFailed: true })))
    const rules = [{ name: 'all', type: '*', fingerprint: 'f' }]
    await directory.replaceFindingRules({ workspaceId, revision: 0, rules }, author)
    for (const ungrouped of await directory.ungrouped()) await directory.grouped(ungrouped)
    expect(await directory.isGrouped(workspaceId)).toBe(true)
    await judge()
    expect(await directory.isGrouped(workspaceId)).toBe(false)
  })

  it('is taken over by an exception that arrives after the failed span was counted', async () => {
    await send(spans(span('page', { hasFailed: true })))
    await judge()
    expect(await counts()).toEqual({ page: 1 })
    await send(spans(span('server', { parent: 'page', exception: 'E' })))
    await judge()
    expect(await counts()).toEqual({ E: 1 })
  })

  it('counts once in any order of arrival, judged after each', async () => {
    for (const rotated of CHECKOUT.map((_, i) => [...CHECKOUT.slice(i), ...CHECKOUT.slice(0, i)])) {
      workspaceId = newId('ws')
      for (const one of rotated) {
        await send(one)
        await judge()
      }
      expect(await counts()).toEqual({ CardError: 1 })
    }
  })

  it('does not take two workspaces with the same trace for one', async () => {
    await send(spans(span('page', { hasFailed: true })))
    const first = workspaceId
    workspaceId = newId('ws')
    await send(spans(span('server', { parent: 'page', exception: 'E' })))
    await judge()
    expect(await counts()).toEqual({ E: 1 })
    workspaceId = first
    expect(await counts()).toEqual({ page: 1 })
  })
})

// The second is asked before the window is recorded, the third before failed spans are stored, the fourth before twins, the last
// before the end of the window.
it.each([2, 3, 4, 5])('counts once when the process is killed at the %sth of its steps', async killedAt => {
  for (const one of CHECKOUT) await send(one)
  await send(spans(span('job', { hasFailed: true })))
  let steps = 0
  const killed = judge(async () => {
    if (++steps === killedAt) throw new Error('killed')
  })
  await expect(killed).rejects.toThrow('killed')
  await judge()
  expect(await counts()).toEqual({ CardError: 1, job: 1 })
})
