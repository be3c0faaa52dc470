import { fillLogs } from '../../data/fill-logs.ts'
import { fillPoints, POINT_DAYS } from '../../data/fill-points.ts'
import { SIGNAL_WORKSPACES } from '../../data/filled-time.ts'
import type { StoredRows } from '../../data/insert-parts.ts'
import { DAYS, workspaceId } from '../../data/stored-traces.ts'
import { settleMerges } from '../../measure/clickhouse-work.ts'
import { type CheckedRead, measureCheckedReads } from '../../measure/reads/checked-reads.ts'
import type { ReadPlan } from '../../measure/reads/measure-gets.ts'
import { startBenchClickHouse, startBenchRedis } from '../../services/start-stores.ts'
import { startTraceReader } from '../../services/start-trace-reader.ts'
import { attempt } from '../../support/rounds.ts'
import type { Row, Scenario, ScenarioResult, ScenarioRun } from '../../support/scenario.ts'
import { logReads } from './log-reads.ts'
import { metricReads } from './metric-reads.ts'

interface Size {
  readonly records: number
  readonly points: number
  readonly reads: ReadPlan
}

const FULL: Size = {
  records: 20_000_000,
  points: 5_000_000,
  reads: { rounds: 3, perRound: 40 },
}
const QUICK: Size = {
  records: 1_500_000,
  points: 300_000,
  reads: { rounds: 2, perRound: 10 },
}

/** The workspace that is read, with half of all rows. */
const WORKSPACE = workspaceId(0)

/** Measures reads of log records and points. */
export const scenario: Scenario = {
  name: 'stored-reads',
  question: 'How long do reads of logs and metrics take with 20 million log records and 5 million points stored?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioRun, { records, points, reads }: Size): Promise<ScenarioResult> {
  const redis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const reader = await startTraceReader(context, redis, clickhouse)
  const { client, url } = clickhouse
  const endMs = Date.now()
  const stored = { logs: await fillLogs(url, records, endMs), points: await fillPoints(url, points, endMs) }
  context.progress(`${describe(stored.logs)} of logs, ${describe(stored.points)} of metrics`)
  await settleMerges(client)

  const part = (what: string, ofSignal: CheckedRead[]): Promise<Row[]> => {
    context.progress(what)
    return attempt(context, what, [], () => measureCheckedReads({ reader, client }, WORKSPACE, ofSignal, reads))
  }
  const rows = [
    ...(await part('logs', logReads(stored.logs.records, endMs))),
    ...(await part('metrics', metricReads(points, endMs))),
  ]
  return {
    rows,
    method: `${reads.perRound / 2} requests of each read to warm up, ${reads.rounds} rounds of ${reads.perRound}, one after the other`,
    notes: [
      `Stored: ${describe(stored.logs)} of logs in ${DAYS} days and ${describe(stored.points)} of metrics in ${POINT_DAYS} days, ` +
        `in ${SIGNAL_WORKSPACES} workspaces. The workspace that is read has half of them.` +
        ' Merges of logs and metrics are stopped.',
    ],
    facts: { Redis: redis.version, ClickHouse: clickhouse.version },
  }
}

function describe({ rows, parts, bytesPerRow }: StoredRows): string {
  return `${rows.toLocaleString('en')} rows in ${parts} parts, ${bytesPerRow.toFixed(1)} bytes each,`
}
