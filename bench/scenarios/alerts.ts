import { setTimeout as delay } from 'node:timers/promises'
import { type AlertEvent, alertEventSchema } from '../../schemas/http/alerts/events.ts'
import { POOL_NAMES } from '../../schemas/queues/names.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../test/support/receivers/webhook-receiver.ts'
import type { SelectVisible } from '../measure/marker-watch.ts'
import { measureUnderLoad, startFreshnessBench } from '../measure/measure-freshness.ts'
import { measureCapacity, measureStored, SPANS } from '../measure/measure-stored.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { levelRows } from '../report/freshness-rows.ts'
import { alertSettings, putAlertingWorkspaces } from '../services/alerting-workspaces.ts'
import { startWorkers } from '../services/start-product.ts'
import { startBenchS3 } from '../services/start-s3.ts'
import { type Stage, startStage } from '../services/start-stage.ts'
import { measureRounds, type Results, rowsOf, samplesOf } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

const SHARE = 0.5
const FINDING_EVERY_MS = 200
const IDLE_WORKSPACES = 100
const [WITH, WITHOUT] = ['with alerts', 'without alerts']

/** Measures when a new finding calls, and what watching costs where nothing arrives. */
export const scenario: Scenario = {
  name: 'alerts',
  question:
    'How long after the acknowledgement of an exception does its webhook arrive at half of the capacity, and what do ' +
    `${IDLE_WORKSPACES} workspaces with receivers cost while nothing arrives?`,
  async run(context) {
    const receiver = await startWebhookReceiver()
    context.onEnd(() => receiver.stop())
    const settings = alertSettings()
    const target = { url: `${receiver.url}/hook`, key: settings.DELIVERY_KEY }
    const stage = await startStage(context)
    const workerSettings = { ...(await startBenchS3(context)).env, ...settings }
    const idle = await measureIdle(stage, workerSettings, () =>
      putAlertingWorkspaces(stage.redis, IDLE_WORKSPACES, target),
    )
    const called = await measureCalls(stage, workerSettings, receiver, async () => {
      const [surface] = await putAlertingWorkspaces(stage.redis, 1, target)
      if (surface === undefined) throw new Error('no workspace was created')
      return surface
    })
    return {
      rows: [...called, ...idleRows(idle)],
      method: methodOf(context),
      notes: NOTES,
      facts: stage.facts,
    }
  },
}

const methodOf = (context: ScenarioRun) => {
  const { rounds, idleMs, loadMs } = lengthsOf(context)
  return `idle: a warm-up and ${rounds} rounds of ${idleMs / 1_000} s with and without alerts; then a warm-up and two runs for capacity, and ${rounds} rounds of ${loadMs / 1_000} s at half of it`
}

const lengthsOf = ({ quick }: ScenarioRun) =>
  quick ? { rounds: 1, idleMs: 10_000, loadMs: 5_000 } : { rounds: 3, idleMs: 60_000, loadMs: 20_000 }

type Surface = Awaited<ReturnType<typeof putAlertingWorkspaces>>[number]

async function measureCalls(
  stage: Stage,
  workerSettings: Readonly<Record<string, string>>,
  receiver: WebhookReceiver,
  putWorkspace: () => Promise<Surface>,
): Promise<Row[]> {
  const { context } = stage
  const { bench, plan: usual } = await startFreshnessBench(stage, FINDING_EVERY_MS, {
    queues: POOL_NAMES,
    workerSettings,
  })
  const plan = { ...usual, payload: { ...usual.payload, data: 'realistic' } } as const
  const capacity = await measureCapacity(context, durationMs =>
    measureStored(stage, bench.pids, { ...plan, mode: { kind: 'closed' }, durationMs }),
  )
  const { rounds, loadMs } = lengthsOf(context)
  const calling = {
    ...bench,
    markerSurface: await putWorkspace(),
    exceptionsSeen: (prefix: string) => calledMarkers(receiver, prefix),
  }
  const measured = await measureRounds(context, {
    what: 'new findings',
    rounds,
    contenders: [
      {
        name: 'called',
        measure: () =>
          measureUnderLoad(calling, {
            ...plan,
            mode: { kind: 'open', requestsPerSecond: (SHARE * capacity) / SPANS },
            warmUpMs: 1_000,
            durationMs: loadMs,
          }),
      },
    ],
    describe: ({ markers }) => `for, ${markers.length} findings`,
  })
  return levelRows(SHARE, measured.get('called') ?? [])
}

/** Selects the markers about whose finding a message has arrived. */
function calledMarkers(receiver: WebhookReceiver, typePrefix: string): SelectVisible {
  let read = receiver.received.length
  return async () => {
    const arrived = receiver.received.slice(read)
    read += arrived.length
    return arrived
      .map(({ body }) => typeOf(alertEventSchema.parse(JSON.parse(body))))
      .filter(type => type.startsWith(typePrefix))
      .map(type => Number(type.slice(typePrefix.length)))
  }
}

const typeOf = ({ data }: AlertEvent) => ('finding' in data ? data.finding.type : '')

/** CPU time of each process, as % of a core. */
type IdleUse = Readonly<Record<string, number>>

/** Measures a worker to which nothing is sent, with and without alerts, one after the other. */
async function measureIdle(
  { context, redis, clickhouse }: Stage,
  workerSettings: Readonly<Record<string, string>>,
  putWorkspaces: () => Promise<unknown>,
): Promise<ReadonlyMap<string, Results<IdleUse>>> {
  await putWorkspaces()
  const { rounds, idleMs } = lengthsOf(context)
  const { DELIVERY_KEY: _, ...withoutAlerts } = workerSettings
  const measure = async (settings: Readonly<Record<string, string>>): Promise<IdleUse> => {
    const worker = await startWorkers(context, redis, clickhouse, POOL_NAMES, settings)
    const meter = meterProcesses({ worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid })
    // A process compiles and connects for some seconds.
    await delay(idleMs / 4)
    const startedAt = performance.now()
    meter.begin()
    await delay(idleMs)
    const use = meter.end()
    const share = 100_000 / (performance.now() - startedAt)
    await worker.stop()
    return Object.fromEntries(Object.entries(use).map(([name, { cpuSeconds }]) => [name, cpuSeconds * share]))
  }
  // New servers have work of their own.
  await measure(workerSettings)
  return measureRounds(context, {
    what: 'idle',
    rounds,
    contenders: [
      { name: WITH, measure: () => measure(workerSettings) },
      { name: WITHOUT, measure: () => measure(withoutAlerts) },
    ],
    describe: use =>
      Object.entries(use)
        .map(([name, percent]) => `${name} ${percent.toFixed(2)} %`)
        .join(', '),
  })
}

function idleRows(measured: ReadonlyMap<string, Results<IdleUse>>): Row[] {
  const [own, bare] = [measured.get(WITH) ?? [], measured.get(WITHOUT) ?? []]
  const unit = '% of a core'
  const added = own.map((use, i) => {
    const without = bare[i]
    return (
      use && without && Object.fromEntries(Object.entries(use).map(([name, is]) => [name, is - (without[name] ?? 0)]))
    )
  })
  const rowOf = (name: string, results: Results<IdleUse>) =>
    rowsOf(results, () => [{ name: `idle, ${name}`, unit, samples: samplesOf(results, use => use.worker ?? 0) }])
  const stores = ['Redis', 'ClickHouse'].flatMap(store =>
    rowsOf(added, () => [
      { name: `idle, alerts in ${store}`, unit, samples: samplesOf(added, use => use[store] ?? 0) },
    ]),
  )
  return [
    ...rowOf('alerts alone', added),
    ...stores,
    ...rowOf(`worker ${WITH}`, own),
    ...rowOf(`worker ${WITHOUT}`, bare),
  ]
}

const NOTES = [
  `Every ${FINDING_EVERY_MS} ms a span arrives with an exception whose finding is new, in a workspace with a webhook on this machine. Beside it, realistic spans at half of their capacity arrive in a workspace without receivers. The time is from the acknowledgement of the span until the webhook was received.`,
  `Idle: ${IDLE_WORKSPACES} workspaces of one surface with a webhook and the rules of every new workspace, one worker with all pools, and no request. Alerts alone: the worker with DELIVERY_KEY less the worker without.`,
]
