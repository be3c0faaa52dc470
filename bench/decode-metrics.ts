import { createMetricsBatch } from '../workers/otlp/metrics.ts'
import { type MetricsPayloadOptions, metricsPayload } from './metrics-payload.ts'
import { decodeMetricRows, decodeMetricRowsByBufbuild, type MetricRow } from './peers/metric-rows.ts'
import type { Scenario } from './support/scenario.ts'
import { type Contender, takeTurns } from './support/take-turns.ts'

const TRANSCODER = 'transcoder, 200 points'
const PROTOBUFJS = 'protobufjs and JSON rows'
const BUFBUILD = '@bufbuild/protobuf and JSON rows'
/** Rows per insert of a pool: the blocks are closed and the buffers reset as often as there. */
const BATCH_ROWS = 100_000
const PAYLOADS = 50
const ORIGIN = { workspaceId: 'ws_bench', surfaceId: 'srf_bench', receivedAtMs: 1_790_000_000_000 }

const TYPICAL: MetricsPayloadOptions = { points: 200, pointsPerMetric: 10 }

export const scenario: Scenario = {
  name: 'decode-metrics',
  question:
    'How many data points a second does one core turn from OTLP protobuf into blocks of ClickHouse rows, against ' +
    'decoding into objects and writing them as JSONEachRow?',
  async run(context) {
    return {
      rows: takeTurns(createContenders(), 'points/s', context),
      notes: [
        `Payloads of ${Math.round(metricsPayload(TYPICAL).length / TYPICAL.points)} bytes a point, of ten points a metric; a quarter are histograms of fifteen buckets; ten resource attributes, four of each point. The transcoder also writes what the JSON rows lack: series ids, types of attributes, exemplars, ints and doubles apart.`,
        'Contenders take turns in one process, so the code of one may have been compiled with the garbage of another in mind; ratios are of the same round.',
      ],
    }
  },
}

function createContenders(): Contender[] {
  return [
    { ...transcode(TRANSCODER, TYPICAL), ratios: [{ to: PROTOBUFJS, goal: { atLeast: 5 } }, { to: BUFBUILD }] },
    transcode('transcoder, 200 points, one a metric', { ...TYPICAL, pointsPerMetric: 1 }),
    transcode('transcoder, 20 points', { ...TYPICAL, points: 20 }),
    transcode('transcoder, 1 point', { ...TYPICAL, points: 1 }),
    writeJson(PROTOBUFJS, decodeMetricRows),
    writeJson(BUFBUILD, decodeMetricRowsByBufbuild),
  ]
}

function transcode(name: string, options: MetricsPayloadOptions): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => metricsPayload(options))
  const batch = createMetricsBatch()
  return {
    name,
    take() {
      for (const body of bodies) {
        const result = batch.append(ORIGIN as never, body)
        if (!result.ok) throw new Error(result.reason)
        if (batch.rows < BATCH_ROWS) continue
        batch.tables()
        batch.reset()
      }
      return bodies.length * options.points
    },
  }
}

function writeJson(name: string, decode: (body: Buffer, origin: typeof ORIGIN) => MetricRow[]): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => metricsPayload(TYPICAL))
  return {
    name,
    take() {
      for (const body of bodies) {
        let lines = ''
        for (const row of decode(body, ORIGIN)) lines += `${JSON.stringify(row)}\n`
        Buffer.from(lines)
      }
      return bodies.length * TYPICAL.points
    },
  }
}
