import {
  type FilledTracegen,
  fillTracegen,
  TRACEGEN_DAYS,
  TRACEGEN_SPANS,
  TRACEGEN_WORKSPACE,
} from '../../data/fill-tracegen.ts'
import { settleMerges } from '../../measure/clickhouse-work.ts'
import { connectBare } from '../../measure/reads/bare-queries.ts'
import { compareReads } from '../../measure/reads/compare-reads.ts'
import type { ReadPlan } from '../../measure/reads/measure-gets.ts'
import { setUpProduct } from '../../services/product-process.ts'
import { startBenchClickHouse, startBenchRedis } from '../../services/start-stores.ts'
import { startTraceReader } from '../../services/start-trace-reader.ts'
import { attempt } from '../../support/rounds.ts'
import type { Row, Scenario, ScenarioResult, ScenarioRun } from '../../support/scenario.ts'
import { tracegenReads } from './tracegen-reads.ts'

interface Size {
  readonly traces: number
  readonly reads: ReadPlan
}

const FULL: Size = { traces: 1_000_000, reads: { rounds: 3, perRound: 20, hasP95: true } }
const QUICK: Size = { traces: 100_000, reads: { rounds: 2, perRound: 6, hasP95: true } }

/** Measures the product with the data and the reads of Jaeger's published benchmark of ClickHouse. */
export const scenario: Scenario = {
  name: 'jaeger-dataset',
  question:
    "With the data of Jaeger's published benchmark of ClickHouse, how many bytes does a span take, and how long do its reads take " +
    'through the API?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioRun, { traces, reads }: Size): Promise<ScenarioResult> {
  const redis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const reader = await startTraceReader(context, await setUpProduct(context, redis, clickhouse))
  const { client, url, pid } = clickhouse
  const deps = { reader, client, bare: connectBare(context, url), pids: { API: reader.pid, ClickHouse: pid } }
  const endMs = Date.now()
  const filled = await fillTracegen(url, context.dir, traces, endMs)
  context.progress(`${filled.rows.toLocaleString('en')} spans in ${filled.parts} parts`)
  await settleMerges(client)
  const measured = await attempt(context, 'reads', [], async () =>
    compareReads(deps, TRACEGEN_WORKSPACE, await tracegenReads(client, endMs), reads),
  )
  return {
    rows: [...storageRows(filled), ...measured],
    method:
      `inserts of 100,000 spans, one after the other; ${reads.perRound / 2} requests of each read to warm up, ${reads.rounds} rounds of ` +
      `${reads.perRound}, and in each round as many queries of ClickHouse alone`,
    notes: [
      `Spans as Jaeger's tracegen sends them: ${traces.toLocaleString('en')} traces of ${TRACEGEN_SPANS} on ${TRACEGEN_DAYS} days, ten ` +
        'services, eleven attributes a child of 97 keys and 1,000 values.',
      'Jaeger published (26.x of ClickHouse, 4 cores): 75.7 bytes a span, inserts of 52,129 spans a second; services 3 ms, operations 4 ms, ' +
        'trace by id 101 ms; search by service 37 ms, operation 38, duration 43, time 47, attribute 1,769, all filters 139. These are times ' +
        'of its queries in ClickHouse, averages of three. Here they are times of whole requests.',
      "Jaeger's searches return up to 1,000 ids in any order. Here a page has the 20 newest traces with their totals.",
    ],
    facts: { Redis: redis.version, ClickHouse: clickhouse.version },
  }
}

function storageRows({ rows, parts, bytesPerRow, listBytesPerSpan, insertRates }: FilledTracegen): Row[] {
  return [
    {
      name: 'disk',
      unit: 'bytes a span',
      samples: [bytesPerRow],
      details: {
        stored: `${rows.toLocaleString('en')} spans in ${parts} parts`,
        'for lists of traces, besides': `${listBytesPerSpan.toFixed(1)} bytes`,
      },
    },
    { name: 'insert of 100,000 spans', unit: 'spans/s', samples: insertRates },
  ]
}
