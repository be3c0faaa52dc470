import { Redis } from 'ioredis'
import { runAudit } from '../../cli/audit/run-audit.ts'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { DAY_S } from '../../schemas/units.ts'
import { onOneServer } from '../../shared/queue/queues.ts'
import { fillSpans } from '../data/fill-spans.ts'
import { DAYS } from '../data/stored-traces.ts'
import { type BenchClickHouse, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import type { Scenario, ScenarioContext, ScenarioResult } from '../support/scenario.ts'

const MILLION = 1_000_000

interface Size {
  readonly millions: number
  readonly rounds: number
}

const FULL: Size = { millions: 100, rounds: 3 }
const QUICK: Size = { millions: 3, rounds: 2 }

/** Measures the audit of a month. */
export const scenario: Scenario = {
  name: 'audit',
  question:
    'How long does an audit of 100 million stored spans take, and does it find a row too many and a dropped part?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioContext, { millions, rounds }: Size): Promise<ScenarioResult> {
  const benchRedis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const redis = new Redis(benchRedis.url(0))
  context.onEnd(() => redis.disconnect())
  const from = Math.floor(Date.now() / 1_000 / DAY_S - DAYS) * DAY_S
  const filled = await fillSpans(clickhouse.url, millions * MILLION, new Date(from * 1_000).toISOString().slice(0, 10))
  await fillLogs(clickhouse.client)
  context.progress(`${filled.spans.toLocaleString('en')} spans and their log are stored`)

  const audit = () => auditOnce(redis, clickhouse, from)
  const samples: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { seconds, differences } = await audit()
    if (differences.length > 0) throw new Error(`a difference where there is none: ${differences[0]?.text}`)
    samples.push(seconds)
    context.progress(`audited in ${seconds.toFixed(1)} s`)
  }
  const expected = await injectLosses(clickhouse.client)
  const { seconds, differences } = await audit()
  const found = new Set(differences.map(({ surfaceId, hour }) => `${surfaceId} ${hour}`))
  const missed = expected.filter(key => !found.has(key))
  if (missed.length > 0) throw new Error(`the audit has missed ${missed.length} of ${expected.length}: ${missed[0]}`)
  return {
    rows: [
      { name: 'audit without a difference', unit: 's', samples },
      {
        name: 'audit that finds a row too many and a dropped part',
        unit: 's',
        samples: [seconds],
      },
    ],
    method: `${rounds} rounds over ${DAYS} days of ${millions} million spans, then one with two injected losses`,
    notes: [
      `the dropped part and the additional row differ in ${expected.length} hours of surfaces, all of them found`,
    ],
    facts: { ClickHouse: clickhouse.version },
  }
}

async function auditOnce(redis: Redis, { client }: BenchClickHouse, from: number) {
  const range = { from, to: from + DAYS * DAY_S, workspaceId: '', queryTimeoutMs: 300_000 }
  const startedAt = performance.now()
  const deps = { queues: onOneServer(redis), clickhouse: client, objects: { async *list() {} }, now: Date.now }
  const { differences } = await runAudit(deps, range)
  return { seconds: (performance.now() - startedAt) / 1_000, differences }
}

/** Writes the log and the counts of requests that would have stored the spans: a row for each surface and minute. */
async function fillLogs(client: ClickHouseClient): Promise<void> {
  const settings = { insert_deduplicate: 0, max_partitions_per_insert_block: '0' } as const
  const log = `
    INSERT INTO ingest_log (workspace_id, surface_id, received_at, job_id, signal, payloads, bytes, rows)
    SELECT workspace_id, surface_id, min(received_at), '', 'traces', intDiv(count(), 20) + 1, 0, count()
    FROM spans GROUP BY workspace_id, surface_id, toStartOfMinute(received_at)`
  const counts = `
    INSERT INTO request_counts
    SELECT workspace_id, surface_id, signal, 'accepted', toStartOfHour(received_at), sum(payloads)
    FROM ingest_log GROUP BY workspace_id, surface_id, signal, toStartOfHour(received_at)`
  // An hour before all others, as if requests had been counted since then.
  const first = `
    INSERT INTO request_counts
    SELECT '', '', 'traces', 'accepted', min(received_hour) - INTERVAL 1 HOUR, 0 FROM request_counts`
  for (const query of [log, counts, first]) await client.command({ query, clickhouse_settings: settings })
}

/** Adds a row, and drops the smallest part of another day. Returns surface and hour of each difference, as an audit states it. */
async function injectLosses(client: ClickHouseClient): Promise<string[]> {
  const select = async <T>(query: string) => (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  const hourOf = "formatDateTime(toStartOfHour(received_at), '%Y-%m-%dT%H:%iZ', 'UTC')"
  const parts = `SELECT name, partition FROM system.parts WHERE table = 'spans' AND active ORDER BY rows LIMIT 1`
  const [part] = await select<{ name: string; partition: string }>(parts)
  const dropped = await select<{ key: string }>(
    `SELECT DISTINCT concat(surface_id, ' ', ${hourOf}) AS key FROM spans WHERE _part = '${part?.name}' LIMIT 900`,
  )
  const added = await select<{ key: string; ws: string; srf: string; at: string }>(`
    SELECT concat(surface_id, ' ', ${hourOf}) AS key, workspace_id AS ws, surface_id AS srf, toString(received_at) AS at
    FROM spans WHERE toDate(received_at) != '${part?.partition}' LIMIT 1`)
  const row = added.map(({ ws, srf, at }) => ({ workspace_id: ws, surface_id: srf, received_at: at }))
  await client.insert({ table: 'spans', values: row, format: 'JSONEachRow' })
  await client.command({ query: `ALTER TABLE spans DROP PART '${part?.name}'` })
  return [...dropped, ...added].map(({ key }) => key)
}
