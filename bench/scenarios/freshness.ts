import { workspaceId } from '../data/stored-traces.ts'
import { POLL_EVERY_MS } from '../measure/marker-watch.ts'
import {
  type FreshnessBench,
  IDLE_MS,
  listedMarkers,
  measureIdle,
  measureUnderLoad,
  startFreshnessBench,
} from '../measure/measure-freshness.ts'
import { measureCapacity, measureStored, SPANS } from '../measure/measure-stored.ts'
import { idleRows, levelRows } from '../report/freshness-rows.ts'
import { issueSurface } from '../services/start-product.ts'
import { type Stage, startStage } from '../services/start-stage.ts'
import { startTraceReader } from '../services/start-trace-reader.ts'
import { measureRounds } from '../support/rounds.ts'
import type { Row, Scenario } from '../support/scenario.ts'

/** Shares of capacity. */
const SHARES = [0.1, 0.5, 0.9]
const IDLE = 'idle'
/** Markers every 4 ms took a quarter of a core, for requests, commits and polls that a user would not send. */
const MARKER_EVERY_MS = 20
/** Each has a finding of its own, so that those which are not listed yet fit on a page. */
const EXCEPTION_EVERY_MS = 200
const LISTED_SHARE = 0.5

/** Measures the time from acknowledgement to visibility. */
export const scenario: Scenario = {
  name: 'freshness',
  question:
    'How long after its acknowledgement can a span be queried in ClickHouse (traces, 200 spans a payload), at 10, 50 and ' +
    '90 % of the capacity of the pipeline, and when it is idle, and when is the finding of an exception listed?',
  async run(context) {
    const stage = await startStage(context)
    const { bench, plan } = await startFreshnessBench(stage, MARKER_EVERY_MS)
    const capacity = await measureCapacity(context, durationMs =>
      measureStored(stage, bench.pids, { ...plan, mode: { kind: 'closed' }, durationMs }),
    )
    const [rounds, durationMs] = context.quick ? [1, 2_000] : [3, 10_000]
    const idle = await measureRounds(context, {
      what: 'idle',
      rounds,
      contenders: [{ name: IDLE, measure: () => measureIdle(bench, context.quick ? 5 : 15) }],
      describe: ({ markers }) => `${markers.length} markers seen`,
    })
    const levels = await measureRounds(context, {
      what: 'under load',
      rounds,
      contenders: SHARES.map(share => ({
        name: String(share),
        measure: () => {
          const requestsPerSecond = (share * capacity) / SPANS
          return measureUnderLoad(bench, {
            ...plan,
            mode: { kind: 'open', requestsPerSecond },
            warmUpMs: 1_000,
            durationMs,
          })
        },
      })),
      describe: ({ markers }) => `of capacity, ${markers.length} markers seen`,
    })
    const listed = await measureListed(stage, bench, plan, rounds, durationMs)
    return {
      rows: [
        { name: 'capacity', unit: 'spans/s', samples: [capacity] },
        ...SHARES.flatMap(share => levelRows(share, levels.get(String(share)) ?? [])),
        ...idleRows(idle.get(IDLE) ?? []),
        ...listed,
      ],
      method: `a warm-up and two runs for capacity; then ${rounds === 1 ? '1 round' : `${rounds} rounds`} of ${durationMs / 1_000} s at each share of it, in rotating order, 1 s of warm-up before each`,
      notes: NOTES,
      facts: stage.facts,
    }
  },
}

/** Measures when findings are listed, under realistic spans, of which one in twenty has an exception. */
async function measureListed(
  stage: Stage,
  bench: FreshnessBench,
  usual: Awaited<ReturnType<typeof startFreshnessBench>>['plan'],
  rounds: number,
  durationMs: number,
): Promise<Row[]> {
  const { context, redis, clickhouse } = stage
  const reader = await startTraceReader(context, redis, clickhouse)
  const markerSurface = await issueSurface(redis, undefined, workspaceId(0))
  const exceptionsSeen = (prefix: string) => listedMarkers(reader, markerSurface.workspaceId, prefix)
  const exceptions = { ...bench, exceptionsSeen, markerSurface, markerEveryMs: EXCEPTION_EVERY_MS }
  const plan = { ...usual, payload: { ...usual.payload, data: 'realistic' } } as const
  const capacity = await measureCapacity(context, durationMs =>
    measureStored(stage, bench.pids, { ...plan, mode: { kind: 'closed' }, durationMs }),
  )
  const requestsPerSecond = (LISTED_SHARE * capacity) / SPANS
  const measured = await measureRounds(context, {
    what: 'exceptions',
    rounds,
    contenders: [
      {
        name: 'listed',
        measure: () =>
          measureUnderLoad(exceptions, {
            ...plan,
            mode: { kind: 'open', requestsPerSecond },
            warmUpMs: 1_000,
            durationMs,
          }),
      },
    ],
    describe: ({ markers }) => `${markers.length} findings seen`,
  })
  return levelRows(LISTED_SHARE, measured.get('listed') ?? [], 'finding listed, ')
}

const NOTES = [
  'Capacity is measured in a closed loop, from the first request until the last span can be queried; the higher of two runs counts. The shares of it are an open loop: requests are due at fixed times, whatever the pipeline does.',
  `Freshness is measured with markers: requests of one span in a separate workspace, sent every ${MARKER_EVERY_MS} ms over separate connections. It is the time from the acknowledgement to the response of the first poll that contains the marker. ClickHouse is polled every ${POLL_EVERY_MS} ms if it responds in time. The run fails if an acknowledged marker is never seen or a span is stored twice.`,
  'Inserts follow a pause at once. With steady traffic one of the express lane is due every 250 ms (BATCH_MAX_AGE_MS), one of the bulk lane every 500 ms, or when a batch has 400,000 rows or 64 MiB.',
  `A finding is listed when GET /v3/findings shows it. Every ${EXCEPTION_EVERY_MS} ms a span arrives with an exception whose finding is new, and realistic spans at half of their own capacity.`,
  `The idle pipeline gets one marker at a time, at least ${IDLE_MS} ms after the one before it was seen.`,
  'Load generator, markers and polls share the cores with the pipeline. During the measurement of capacity there were no markers and polls.',
]
