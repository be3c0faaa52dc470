import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { pack } from '@rrweb/packer'
import fc from 'fast-check'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { mutatePayload } from '../payloads/mutate-payload.ts'
import { otlpJson } from '../payloads/otlp-json.ts'
import { logsRequest } from '../payloads/otlp-logs.ts'
import { metricsRequest } from '../payloads/otlp-metrics.ts'
import { traceRequest } from '../payloads/otlp-traces.ts'
import { type Random, seededRandom } from '../payloads/scramble-message.ts'
import { field } from './bodies.ts'
import { pick } from './fuzz-run.ts'

/** Signals of OTLP, as in the paths of the edge. */
export type FuzzedSignal = 'traces' | 'logs' | 'metrics'

const ORIGINALS = 200

/** Valid exports of each signal in both encodings, from which the inputs are made. */
interface ExportCorpus {
  readonly protobuf: Readonly<Record<FuzzedSignal, readonly Buffer[]>>
  readonly json: Readonly<Record<FuzzedSignal, readonly Buffer[]>>
}

/** Makes the exports of a seed. */
export function exportCorpus(seed: number): ExportCorpus {
  const random = seededRandom(seed)
  function make<Desc extends DescMessage>(desc: Desc, arbitrary: fc.Arbitrary<MessageShape<Desc>>) {
    const messages = fc.sample(arbitrary, { numRuns: ORIGINALS, seed: seed | 0 })
    return {
      protobuf: messages.map(message => Buffer.from(toBinary(desc, message))).filter(bytes => bytes.length > 0),
      json: messages.map(message => otlpJson(desc, message, random)),
    }
  }
  const traces = make(ExportTraceServiceRequestSchema, traceRequest)
  const logs = make(ExportLogsServiceRequestSchema, logsRequest)
  const metrics = make(ExportMetricsServiceRequestSchema, metricsRequest)
  return {
    protobuf: { traces: traces.protobuf, logs: logs.protobuf, metrics: metrics.protobuf },
    json: { traces: traces.json, logs: logs.json, metrics: metrics.json },
  }
}

/** Returns an original as it is, broken in a few places, twice in a row, or inside another message. */
export function mutated(original: Buffer, random: Random): Buffer {
  const kind = random()
  if (kind < 0.05 || original.length === 0) return original
  if (kind < 0.1) return Buffer.concat([original, mutatePayload(original, random)])
  if (kind < 0.15) return field(1 + Math.floor(random() * 12), original)
  return mutatePayload(original, random)
}

const NASTY_JSON = [
  'null',
  '-0',
  '1e999',
  '18446744073709551616',
  '"\\ud800"',
  '"\\u0000"',
  '{"__proto__":{"a":1}}',
  '[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]',
  '{"a":'.repeat(400),
  '"'.repeat(3),
  'NaN',
  '"2026-13-45T99:99:99Z"',
  `"${'é'.repeat(300)}"`,
  '{}',
  '[]',
]

/** Returns a JSON text with values replaced by others, cut off, or broken in a few places. */
export function mutatedJson(text: string, random: Random): string {
  const kind = random()
  if (kind < 0.05) return text
  if (kind < 0.1) return pick(NASTY_JSON, random)
  if (kind < 0.3) return mutatePayload(Buffer.from(text), random).toString('latin1')
  const values = [...text.matchAll(/(?<=[:,[])("(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null)/g)]
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) return pick(NASTY_JSON, random)
  return text.slice(0, value.index) + pick(NASTY_JSON, random) + text.slice(value.index + value[0].length)
}

/** Content encodings of an export; the last one is unknown. */
const ENCODINGS = ['identity', 'gzip', 'deflate', 'zstd'] as const
/** A content encoding of an export. */
export type FuzzedEncoding = (typeof ENCODINGS)[number]

/** Compresses in one of the ways of exporters, and breaks a few of the results. */
export function compressed(body: Buffer, random: Random): { encoding: FuzzedEncoding; body: Buffer } {
  const encoding = random() < 0.6 ? 'identity' : pick(ENCODINGS, random)
  const bytes = compress(body, encoding)
  return { encoding, body: encoding !== 'identity' && random() < 0.2 ? mutatePayload(bytes, random) : bytes }
}

function compress(body: Buffer, encoding: FuzzedEncoding): Buffer {
  switch (encoding) {
    case 'identity':
      return body
    case 'gzip':
      return gzipSync(body, { level: 1 })
    case 'deflate':
      return deflateSync(body, { level: 1 })
    case 'zstd':
      return zstdCompressSync(body)
  }
}

/** Replay chunks as pages send them. */
export const REPLAY_CHUNKS: readonly Buffer[] = [
  Buffer.from(
    '{"type":4,"data":{"href":"/"},"timestamp":1790000000000}\n{"type":2,"data":{},"timestamp":1790000000001}\n',
  ),
  Buffer.from(`{"type":3,"data":{"text":"${'é'.repeat(500)}"},"timestamp":1790000000002}`),
  Buffer.from(
    `${JSON.stringify(pack({ type: 4, data: { href: '/', width: 1, height: 1 }, timestamp: 1790000000003 }))}\n`,
  ),
]

const SOURCE = `export class Cart<T> { #sum = () => 1; async pay(order: T) { return <b>{order}</b> } }
function checkout() { const deep = { get() { throw new Error('\u2028') } }; list.map(x => x?.[0] ?? (() => 1)) }`

/** Source maps as build tools write them. */
const SOURCE_MAPS: readonly Buffer[] = [
  { version: 3, sources: ['a.ts'], names: ['f'], mappings: 'AAAAA,SAASA;AACT' },
  {
    ...{ version: 3, sourceRoot: '../src', sources: ['cart.tsx', 'b.js'], sourcesContent: [SOURCE, SOURCE] },
    ...{ names: ['pay', 'Cart'], mappings: 'AAAOA,kBAAmBC;AACnB,CCAA;AAAA,aAAaA,SAAS' },
  },
  {
    version: 3,
    sections: [
      { offset: { line: 0, column: 0 }, map: { version: 3, sources: ['b.ts'], names: [], mappings: 'AAAA' } },
      {
        offset: { line: 2, column: 5 },
        map: { version: 3, sources: ['c.ts'], sourcesContent: [SOURCE], names: [], mappings: 'AAAA,EAAE;AACA' },
      },
    ],
  },
].map(map => Buffer.from(JSON.stringify(map)))

/** Returns a source map with a broken value, or broken in a few places. */
export function mutatedMap(random: Random): Buffer {
  const map = pick(SOURCE_MAPS, random)
  return random() < 0.5 ? mutated(map, random) : Buffer.from(mutatedJson(map.toString(), random))
}

/** Returns the metadata of a replay chunk with a broken value, or broken in a few places. */
export const mutatedMetadata = (random: Random): string =>
  mutatedJson('{"windowId":"w","segmentId":0,"firstTs":1790000000000,"lastTs":1790000000001}', random)
