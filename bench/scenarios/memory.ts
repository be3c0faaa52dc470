import { setTimeout as delay } from 'node:timers/promises'
import { IMAGE_EDGE_MEMORY, IMAGE_MALLOC } from '../../test/support/containers/image-malloc.ts'
import type { LoadPlan } from '../load/plan.ts'
import { acceptedSpans, CONNECTIONS, SPANS, untilStored } from '../measure/measure-stored.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { type Stage, startInstallation, startStage } from '../services/start-stage.ts'
import type { Row, Scenario } from '../support/scenario.ts'

/** States reported for each process. */
const REPORTED: readonly { process: string; states: readonly State[] }[] = [
  { process: 'edge', states: ['idle', 'full load', 'ClickHouse away'] },
  { process: 'worker', states: ['idle', 'full load', 'ClickHouse away', 'catching up'] },
]
type State = 'idle' | 'full load' | 'ClickHouse away' | 'catching up'

/** Peak resident set by process, in MB. */
type Peaks = Readonly<Record<string, number>>

/** Measures the memory of edge and worker. */
export const scenario: Scenario = {
  name: 'memory',
  question:
    'How much memory do edge and worker use when idle, under full load, and under full load while ClickHouse is unavailable?',
  async run(context) {
    const stage = await startStage(context)
    const { plan, pids } = await startInstallation(stage, {
      edgeSettings: IMAGE_EDGE_MEMORY,
      workerSettings: IMAGE_MALLOC,
    })
    const loadMs = context.quick ? 3_000 : 8_000
    return {
      rows: toRows(await measureStates(stage, pids, plan, loadMs)),
      method: `one pass: 1 s idle after 3 s of rest, then ${loadMs / 1_000} s of full load, and the same with ClickHouse unavailable; no warm-up`,
      notes: [
        `Peaks of the resident set, as the kernel reports them. All settings have their defaults, and malloc and the heap of the edge those of the image, with which processes run where their memory has a limit. In the scenario pipeline they run without. Full load is ${CONNECTIONS} connections that send payloads of ${SPANS} spans as fast as they are accepted, until the last span is stored.`,
        'ClickHouse is stopped with SIGSTOP ("ClickHouse away"): its connections stay open without a response. "Catching up" is the time from SIGCONT until the last span is stored.',
      ],
      facts: stage.facts,
    }
  },
}

async function measureStates(
  { context, clickhouse, generator }: Stage,
  pids: Readonly<Record<string, number>>,
  plan: Omit<LoadPlan, 'mode' | 'durationMs'>,
  loadMs: number,
): Promise<Readonly<Record<State, Peaks>>> {
  const { progress, onEnd } = context
  let accepted = 0
  const send = async (durationMs: number) => {
    accepted += acceptedSpans(await generator.run({ ...plan, mode: { kind: 'closed' }, durationMs }))
  }
  const stored = () => untilStored(clickhouse.client, accepted)
  const peaksDuring = (what: State, work: () => Promise<unknown>) => {
    progress(what)
    return measurePeaks(pids, work)
  }

  await delay(3_000)
  const idle = await peaksDuring('idle', () => delay(1_000))
  const loaded = await peaksDuring('full load', async () => {
    await send(loadMs)
    await stored()
  })
  onEnd(() => void process.kill(clickhouse.pid, 'SIGCONT'))
  process.kill(clickhouse.pid, 'SIGSTOP')
  const away = await peaksDuring('ClickHouse away', () => send(loadMs))
  process.kill(clickhouse.pid, 'SIGCONT')
  const catchingUp = await peaksDuring('catching up', stored)
  return { idle, 'full load': loaded, 'ClickHouse away': away, 'catching up': catchingUp }
}

async function measurePeaks(pids: Readonly<Record<string, number>>, work: () => Promise<unknown>): Promise<Peaks> {
  const meter = meterProcesses(pids)
  meter.begin()
  await work()
  return Object.fromEntries(Object.entries(meter.end()).map(([name, use]) => [name, use.peakMemoryBytes / 1e6]))
}

function toRows(peaks: Readonly<Record<State, Peaks>>): Row[] {
  return REPORTED.flatMap(({ process, states }) =>
    states.map(state => ({ name: `${process}, ${state}`, unit: 'MB', samples: [peaks[state][process] ?? 0] })),
  )
}
