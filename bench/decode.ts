import { createSpansBatch } from '../workers/otlp/spans.ts'
import { decodeTraceRowsByBufbuild } from './peers/bufbuild-rows.ts'
import { decodeTraceRows, type TraceRow } from './peers/otlp-rows.ts'
import type { Row, Scenario } from './support/scenario.ts'
import { type TracePayloadOptions, tracePayload } from './trace-payload.ts'

const TRANSCODER = 'transcoder, 200 spans'
const PROTOBUFJS = 'protobufjs and JSON rows'
const BUFBUILD = '@bufbuild/protobuf and JSON rows'
/** Rows per insert of the spans pool: the blocks are closed and the buffers reset as often as there. */
const BATCH_ROWS = 100_000
const PAYLOADS = 50
const ORIGIN = { workspaceId: 'ws_bench', surfaceId: 'srf_bench', receivedAtMs: 1_790_000_000_000 }

const TYPICAL: TracePayloadOptions = { spans: 200, spansPerTrace: 20, exceptionEvery: 0 }

/** Takes payloads for about so long and returns how many spans it took. */
interface Contender {
  readonly name: string
  readonly ratios?: Row['ratios']
  readonly goal?: Row['goal']
  take(): number
}

export const scenario: Scenario = {
  name: 'decode',
  question:
    'How many spans a second does one core turn from OTLP protobuf into blocks of ClickHouse rows, against decoding ' +
    'into objects and writing them as JSONEachRow?',
  async run({ quick, progress }) {
    const [rounds, roundMs] = quick ? [3, 300] : [9, 1_500]
    const contenders = createContenders()
    const samples = new Map(contenders.map(({ name }) => [name, [] as number[]]))
    for (const contender of contenders) measure(contender, roundMs)
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1} of ${rounds}`)
      for (const contender of contenders) samples.get(contender.name)?.push(measure(contender, roundMs))
    }
    return {
      rows: contenders.map(({ name, ratios, goal }) => ({
        name,
        unit: 'spans/s',
        samples: samples.get(name) ?? [],
        ...(ratios && { ratios }),
        ...(goal && { goal }),
      })),
      notes: [
        `Payloads of ${Math.round(tracePayload(TYPICAL).length / TYPICAL.spans)} bytes a span: ten resource attributes, eight of each span. The transcoder also writes columns the JSON rows lack (types of attributes, dropped counts, scope, flags).`,
        'Contenders take turns in one process, so the code of one may have been compiled with the garbage of another in mind; ratios are of the same round.',
      ],
    }
  },
}

function createContenders(): Contender[] {
  return [
    {
      ...transcode(TRANSCODER, TYPICAL),
      goal: { atLeast: 800_000 },
      ratios: [{ to: PROTOBUFJS, goal: { atLeast: 5 } }, { to: BUFBUILD }],
    },
    transcode('transcoder, every tenth span with an exception', { ...TYPICAL, exceptionEvery: 10 }),
    transcode('transcoder, 20 spans', { ...TYPICAL, spans: 20 }),
    transcode('transcoder, 1 span', { ...TYPICAL, spans: 1 }),
    writeJson(PROTOBUFJS, decodeTraceRows),
    writeJson(BUFBUILD, decodeTraceRowsByBufbuild),
  ]
}

function transcode(name: string, options: TracePayloadOptions): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => tracePayload(options))
  const batch = createSpansBatch()
  return {
    name,
    take() {
      for (const body of bodies) {
        const result = batch.append(ORIGIN, body)
        if (!result.ok) throw new Error(result.reason)
        if (batch.rows < BATCH_ROWS) continue
        batch.tables()
        batch.reset()
      }
      return bodies.length * options.spans
    },
  }
}

function writeJson(name: string, decode: (body: Buffer, origin: typeof ORIGIN) => TraceRow[]): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => tracePayload(TYPICAL))
  return {
    name,
    take() {
      for (const body of bodies) {
        let lines = ''
        for (const row of decode(body, ORIGIN)) lines += `${JSON.stringify(row)}\n`
        Buffer.from(lines)
      }
      return bodies.length * TYPICAL.spans
    },
  }
}

/** Spans per second over about `durationMs`. */
function measure(contender: Contender, durationMs: number): number {
  globalThis.gc?.()
  const startedAt = performance.now()
  let spans = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    spans += contender.take()
    elapsedMs = performance.now() - startedAt
  }
  return (spans / elapsedMs) * 1_000
}
