import { spawn } from 'node:child_process'
import { Redis } from 'ioredis'
import { QUEUES } from '../../schemas/queues/names.ts'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { Marker } from '../measure/marker-sender.ts'
import { type LoadedFreshness, measureUnderLoad, startFreshnessBench } from '../measure/measure-freshness.ts'
import { acceptedSpans, CONNECTIONS } from '../measure/measure-stored.ts'
import { durationsOf, freshnessOf, valueAt } from '../report/freshness-rows.ts'
import { startBenchS3 } from '../services/start-s3.ts'
import { startStage } from '../services/start-stage.ts'
import { measureRounds, type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

/** A flood from one surface, and which of its requests must be stored. */
interface Flood {
  readonly name: string
  readonly plan: Omit<LoadPlan, 'durationMs' | 'warmUpMs'>
  readonly storedSpans: (load: LoadResult) => number
  /** Whether another process computes meanwhile. */
  readonly besideBusyProcess?: boolean
}

/** Name of the flood that costs the product least, which the others are compared with. */
const UNKNOWN_PATH = 'an unknown path'
/** The same flood, while another process takes as much of the processors as it gets, as a worker does that stores a flood. */
const UNKNOWN_PATH_AND_BUSY = 'an unknown path, with a busy process'

/** Measures what the flood of one surface costs another. */
export const scenario: Scenario = {
  name: 'fairness',
  question:
    'What do other surfaces notice when one surface floods the edge as fast as the machine can send, with valid payloads ' +
    'of 200 spans or with bodies that cannot be decoded?',
  async run(context) {
    const bench = await startBench(context)
    const memoryShares: number[] = []
    const [rounds, durationMs] = context.quick ? [1, 3_000] : [5, 8_000]
    const results = await measureRounds(context, {
      what: 'flood',
      rounds,
      contenders: bench.floods.map(({ name, plan, storedSpans, besideBusyProcess }) => ({
        name,
        async measure() {
          const watch = watchMemory(bench.redisUrl)
          const busy = besideBusyProcess ? spawn(process.execPath, ['-e', 'for (;;);']) : undefined
          try {
            return await measureUnderLoad(bench, { ...plan, warmUpMs: 1_000, durationMs }, storedSpans)
          } finally {
            busy?.kill()
            memoryShares.push(await watch.stop())
          }
        },
      })),
      describe: ({ load }) => statusText(load),
    })
    return {
      rows: [...[...results].flatMap(([name, measured]) => floodRows(name, measured)), memoryRow(memoryShares)],
      method: `${rounds} round${rounds === 1 ? '' : 's'} of ${durationMs / 1_000} s for each flood, 1 s of warm-up before each`,
      notes: NOTES,
      facts: bench.facts,
    }
  },
}

const NOTES = [
  `The flood is a closed loop over ${CONNECTIONS} connections that sends the next request as soon as it has a response, also after a 429. The other surface sends a request of one span every 4 ms over separate connections.`,
  'All settings have their defaults, and Redis has 2 GB, as with `npm start`.',
  'The flood of an unknown path gets 404 from the head of each request. It shows what the machine, the load generator and the HTTP server take from the other surface without any work of the queues.',
  'The same flood with a busy process, which computes and does nothing else, shows what sharing two cores with a third process costs. A flood that is stored has two such processes, a worker and ClickHouse.',
  'The flood is stored or dead-lettered completely before the next one starts, and the run fails if a span of it or of the other surface is missing.',
]

async function startBench(context: ScenarioRun) {
  const stage = await startStage(context, { maxMemory: '2gb' })
  const s3 = await startBenchS3(context)
  const options = { queues: QUEUES, edgeSettings: {}, workerSettings: s3.env }
  const { bench, plan } = await startFreshnessBench(stage, 4, options)
  const valid = { ...plan, mode: { kind: 'closed', impatient: true } } as const
  const unknown = { plan: { ...valid, path: '/drain/v1/unknown' }, storedSpans: () => 0 }
  const undecodable = { ...valid, payload: { ...valid.payload, undecodable: true } }
  const floods: Flood[] = [
    { name: UNKNOWN_PATH, ...unknown },
    { name: UNKNOWN_PATH_AND_BUSY, ...unknown, besideBusyProcess: true },
    { name: 'valid payloads', plan: valid, storedSpans: acceptedSpans },
    { name: 'undecodable bodies', plan: undecodable, storedSpans: () => 0 },
  ]
  return { ...bench, floods, facts: stage.facts, redisUrl: stage.redis.url(0) }
}

function floodRows(flood: string, results: Results<LoadedFreshness>): Row[] {
  const under = `under a flood of ${flood}`
  const quantile = (of: (markers: readonly Marker[]) => number[], value: number) =>
    samplesOf(results, ({ markers }) => valueAt(of(markers), value))
  return rowsOf(results, () => [
    { name: `acknowledged p50 ${under}`, unit: 'ms', samples: quantile(acknowledgementsOf, 0.5) },
    {
      name: `acknowledged p99 ${under}`,
      unit: 'ms',
      samples: quantile(acknowledgementsOf, 0.99),
      ...(flood !== UNKNOWN_PATH &&
        flood !== UNKNOWN_PATH_AND_BUSY && {
          ratios: [UNKNOWN_PATH, UNKNOWN_PATH_AND_BUSY].map(path => ({
            to: `acknowledged p99 under a flood of ${path}`,
          })),
        }),
      details: {
        'responses to the flood': succeeded(results)
          .map(({ load }) => statusText(load))
          .join('; '),
      },
    },
    { name: `stored p99 ${under}`, unit: 'ms', samples: quantile(freshnessOf, 0.99) },
    {
      name: `refused requests of others ${under}`,
      unit: 'requests',
      samples: samplesOf(results, ({ markers }) => markers.filter(marker => marker.isRefused).length),
    },
  ])
}

const acknowledgementsOf = (markers: readonly Marker[]) => durationsOf(markers, 'sentAt', 'acknowledgedAt')

function memoryRow(shares: readonly number[]): Row {
  return { name: 'largest share of Redis’ memory in use', unit: '%', samples: shares }
}

const WATCH_EVERY_MS = 100

/** Watches the share of maxmemory that Redis uses. `stop` returns the largest share, in percent. */
function watchMemory(url: string): { stop(): Promise<number> } {
  const redis = new Redis(url)
  let largest = 0
  const look = async () => {
    const info = await redis.info('memory')
    const figure = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
    largest = Math.max(largest, (100 * figure('used_memory')) / figure('maxmemory'))
  }
  let looking = look()
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, WATCH_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await looking
      redis.disconnect()
      return largest
    },
  }
}

function statusText({ statuses }: LoadResult): string {
  return Object.entries(statuses)
    .map(([status, count]) => `${count.toLocaleString('en')} × ${status}`)
    .join(', ')
}
