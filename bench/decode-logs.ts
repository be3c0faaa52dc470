import { createLogsBatch } from '../workers/otlp/logs.ts'
import { type LogPayloadOptions, logPayload } from './log-payload.ts'
import { decodeLogRows, decodeLogRowsByBufbuild, type LogRow } from './peers/log-rows.ts'
import type { Row, Scenario } from './support/scenario.ts'

const TRANSCODER = 'transcoder, 200 records'
const PROTOBUFJS = 'protobufjs and JSON rows'
const BUFBUILD = '@bufbuild/protobuf and JSON rows'
/** Rows per insert of a pool: the blocks are closed and the buffers reset as often as there. */
const BATCH_ROWS = 100_000
const PAYLOADS = 50
const ORIGIN = { workspaceId: 'ws_bench', surfaceId: 'srf_bench', receivedAtMs: 1_790_000_000_000 }

const TYPICAL: LogPayloadOptions = { records: 200, exceptionEvery: 0 }

/** Takes payloads for about so long and returns how many records it took. */
interface Contender {
  readonly name: string
  readonly ratios?: Row['ratios']
  take(): number
}

export const scenario: Scenario = {
  name: 'decode-logs',
  question:
    'How many log records a second does one core turn from OTLP protobuf into blocks of ClickHouse rows, against ' +
    'decoding into objects and writing them as JSONEachRow?',
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
      rows: contenders.map(({ name, ratios }) => ({
        name,
        unit: 'records/s',
        samples: samples.get(name) ?? [],
        ...(ratios && { ratios }),
      })),
      notes: [
        `Payloads of ${Math.round(logPayload(TYPICAL).length / TYPICAL.records)} bytes a record: ten resource attributes, five of each record. The transcoder also writes columns the JSON rows lack (types of attributes and body, the observed time, dropped counts).`,
        'Contenders take turns in one process, so the code of one may have been compiled with the garbage of another in mind; ratios are of the same round.',
      ],
    }
  },
}

function createContenders(): Contender[] {
  return [
    { ...transcode(TRANSCODER, TYPICAL), ratios: [{ to: PROTOBUFJS, goal: { atLeast: 5 } }, { to: BUFBUILD }] },
    transcode('transcoder, every tenth record with an exception', { ...TYPICAL, exceptionEvery: 10 }),
    transcode('transcoder, 20 records', { ...TYPICAL, records: 20 }),
    transcode('transcoder, 1 record', { ...TYPICAL, records: 1 }),
    writeJson(PROTOBUFJS, decodeLogRows),
    writeJson(BUFBUILD, decodeLogRowsByBufbuild),
  ]
}

function transcode(name: string, options: LogPayloadOptions): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => logPayload(options))
  const batch = createLogsBatch()
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
      return bodies.length * options.records
    },
  }
}

function writeJson(name: string, decode: (body: Buffer, origin: typeof ORIGIN) => LogRow[]): Contender {
  const bodies = Array.from({ length: PAYLOADS }, () => logPayload(TYPICAL))
  return {
    name,
    take() {
      for (const body of bodies) {
        let lines = ''
        for (const row of decode(body, ORIGIN)) lines += `${JSON.stringify(row)}\n`
        Buffer.from(lines)
      }
      return bodies.length * TYPICAL.records
    },
  }
}

/** Records per second over about `durationMs`. */
function measure(contender: Contender, durationMs: number): number {
  globalThis.gc?.()
  const startedAt = performance.now()
  let records = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    records += contender.take()
    elapsedMs = performance.now() - startedAt
  }
  return (records / elapsedMs) * 1_000
}
