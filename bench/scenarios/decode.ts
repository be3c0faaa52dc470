import { DEFAULT_SCRUBBING, VALUE_KINDS } from '../../schemas/records/scrubbing.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { DEFAULT_SCRUBBER, Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { Dropper } from '../../workers/dropping/dropper.ts'
import { createJsonTranscoder } from '../../workers/otlp/json/transcode-json.ts'
import type { OtlpBatch } from '../../workers/otlp/protobuf/otlp-batch.ts'
import type { RowBatch } from '../../workers/sink/row-batch.ts'
import { SIGNALS, type Signal } from '../measure/decode-signals.ts'
import type { Row, Scenario } from '../support/scenario.ts'
import { type Contender, methodOfTurns, takeTurns } from '../support/take-turns.ts'

/** Default number of records in a payload. */
const TYPICAL = 200
/** Rows per insert, as in a worker pool, so that blocks are closed and buffers reset as often. */
const BATCH_ROWS = 100_000
/** Number of different payloads, too many for the caches of a core. */
const PAYLOADS = 40

const FRAME: PayloadFrame = {
  workspaceId: 'ws_bench',
  surfaceId: 'srf_bench',
  receivedAtMs: 1_790_000_000_000,
  contentType: 'application/x-protobuf',
  contentEncoding: 'identity',
  attributes: '',
  body: Buffer.alloc(0),
}

/** Measures decoding on one core. */
export const scenario: Scenario = {
  name: 'decode',
  question:
    'How many spans, log records and data points a second does one core convert from OTLP (protobuf, JSON) to Native ' +
    'blocks, against a library that decodes into objects and writes JSON?',
  async run(context) {
    const rows: Row[] = []
    for (const signal of SIGNALS) {
      const progress = (text: string) => context.progress(`${signal.name}, ${text}`)
      rows.push(...(await takeTurns(createContenders(signal), `${signal.noun}/s`, { ...context, progress })))
    }
    return {
      rows,
      method: methodOfTurns(context.quick),
      notes: [
        ...SIGNALS.map(noteOf),
        'Figures use the CPU time of the main thread. Garbage collection on other threads, mostly for the library, is not counted.',
        'The contenders of one signal take turns in one process, so the compiled code and the garbage of one can affect another.',
      ],
    }
  },
}

function createContenders(signal: Signal): Contender[] {
  const { name, noun, payload, costlier, createBatch } = signal
  const rowOf = (what: string) => `${name}: ${what}`
  const typical = rowOf(`product, ${TYPICAL} ${noun}`)
  const byLibrary = rowOf('objects of a library, as JSON')
  const bodies = payloadsOf(payload, TYPICAL)
  const product = (what: string, of: MakePayload, count: number): Contender => ({
    name: rowOf(`product, ${what}`),
    take: decode(createBatch(), payloadsOf(of, count), count),
  })
  return [
    {
      name: typical,
      take: decode(createBatch(), bodies, TYPICAL),
      ratios: [{ to: byLibrary }],
    },
    product(`${TYPICAL} ${noun}, ${costlier.name}`, costlier.payload, TYPICAL),
    {
      name: rowOf(`product, ${TYPICAL} ${noun}, scrubbed by the default rules`),
      take: decode(scrubbing(createBatch()), bodies, TYPICAL),
      ratios: [{ to: typical }],
    },
    {
      name: rowOf(`product, ${TYPICAL} ${noun}, scrubbed by key and every kind of value`),
      take: decode(scrubbing(createBatch(), ALL_RULES), bodies, TYPICAL),
      ratios: [{ to: typical }],
    },
    {
      name: rowOf(`product, ${TYPICAL} ${noun}, with drop rules that match none`),
      take: decode(dropping(createBatch()), bodies, TYPICAL),
      ratios: [{ to: typical }],
    },
    product(`1 ${noun.slice(0, -1)}`, payload, 1),
    { name: byLibrary, take: decodeByLibrary(signal, bodies) },
    asJson(signal, bodies, typical),
  ]
}

const ALL_RULES = new Scrubber({
  revision: 1,
  rules: [...DEFAULT_SCRUBBING, { name: 'values', values: [...VALUE_KINDS], action: 'mask' }],
})

function scrubbing(batch: OtlpBatch, scrubber = DEFAULT_SCRUBBER): OtlpBatch {
  batch.scrubberOf = () => scrubber
  return batch
}

const DROP_RULES = new Dropper({
  revision: 1,
  rules: [
    { name: 'health', names: ['GET /none*', 'GET /never'] },
    { name: 'debug', attributes: [{ key: 'http.route', value: '/none' }] },
    { name: 'crawl', services: ['crawler'], keep: 0.1 },
  ],
})

function dropping(batch: OtlpBatch): OtlpBatch {
  batch.dropperOf = () => DROP_RULES
  return batch
}

function asJson({ name, toJson, createBatch }: Signal, bodies: readonly Buffer[], asProtobuf: string): Contender {
  const transcoder = createJsonTranscoder()
  const toProtobuf = (body: Buffer) => {
    const result = transcoder.transcode(name, body)
    if (!result.ok) throw new Error(result.reason)
    return result.message
  }
  return {
    name: `${name} as JSON: product`,
    take: decode(createBatch(), bodies.map(toJson), TYPICAL, toProtobuf),
    ratios: [{ to: asProtobuf }],
  }
}

type MakePayload = (count: number, number: number) => Buffer

function payloadsOf(payload: MakePayload, count: number): Buffer[] {
  return Array.from({ length: PAYLOADS }, (_, i) => payload(count, i))
}

/** Decodes like a worker: one payload after another into column buffers, which become blocks when they are full. */
function decode(
  batch: RowBatch,
  bodies: readonly Buffer[],
  recordsPerBody: number,
  toProtobuf?: (body: Buffer) => Buffer,
): Contender['take'] {
  return () => {
    for (const body of bodies) {
      append(batch, toProtobuf ? toProtobuf(body) : body, recordsPerBody)
      if (batch.rows < BATCH_ROWS) continue
      batch.tables()
      batch.reset()
    }
    return bodies.length * recordsPerBody
  }
}

function append(batch: RowBatch, body: Buffer, records: number): void {
  const result = batch.append(FRAME, body)
  if (!result.ok) throw new Error(result.reason)
  if (result.rows !== records) throw new Error(`${result.rows} rows of ${records} records`)
}

function decodeByLibrary({ toJson }: Signal, bodies: readonly Buffer[]): Contender['take'] {
  return () => {
    for (const body of bodies) toJson(body)
    return bodies.length * TYPICAL
  }
}

function noteOf({ name, noun, payload, note }: Signal): string {
  const bytes = Math.round(payload(TYPICAL).length / TYPICAL)
  return `${name}: payloads of ${bytes} bytes a ${noun.slice(0, -1)} in protobuf; ${note}.`
}
