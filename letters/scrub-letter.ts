import { promisify } from 'node:util'
import { gunzip, inflate, zstdDecompress } from 'node:zlib'
import { type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema } from '../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { QueueName } from '../schemas/queues/names.ts'
import type { ScrubbingRule } from '../schemas/records/scrubbing.ts'
import { MIB } from '../schemas/units.ts'
import type { ContentEncoding, PayloadFrame } from '../shared/queue/payload-frame.ts'
import type { Scrubber } from '../shared/scrubbing/scrubber.ts'

/** A larger body is not read: objects of it would take a tenth of a second and more. */
export const SCRUBBED_LETTER_BYTES = 4 * MIB

const MESSAGES: Readonly<Partial<Record<QueueName, DescMessage>>> = {
  traces: ExportTraceServiceRequestSchema,
  logs: ExportLogsServiceRequestSchema,
  metrics: ExportMetricsServiceRequestSchema,
}

const DECOMPRESSORS: Readonly<Partial<Record<ContentEncoding, (body: Buffer, options: object) => Promise<Buffer>>>> = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  zstd: promisify(zstdDecompress),
}

/** The body of a letter as it is shown. */
interface ShownBody {
  readonly bytes: Buffer
  readonly contentEncoding: ContentEncoding
  /** Number of values that were replaced. If there are none, the bytes are those that were sent. */
  readonly scrubbed: number
}

/**
 * Returns the body of a letter with the values replaced that rules would have replaced on arrival. One that cannot be read, or is
 * too large, has only the kinds of values replaced that are found in texts, or nothing if it cannot be decompressed.
 */
export async function scrubLetter(
  scrubber: Scrubber,
  queue: QueueName,
  { body, contentType, contentEncoding }: Pick<PayloadFrame, 'body' | 'contentType' | 'contentEncoding'>,
): Promise<ShownBody> {
  const asSent = { bytes: body, contentEncoding, scrubbed: 0 }
  const text = await decompressed(body, contentEncoding)
  if (text === undefined) return asSent
  const used: ScrubbingRule[] = []
  const bytes = scrubParsed(scrubber, text, MESSAGES[queue], contentType, used) ?? scrubber.scrubBytes(text, [], used)
  return used.length === 0 ? asSent : { bytes, contentEncoding: 'identity', scrubbed: used.length }
}

async function decompressed(body: Buffer, encoding: ContentEncoding): Promise<Buffer | undefined> {
  if (encoding === 'identity') return body
  try {
    return await DECOMPRESSORS[encoding]?.(body, { maxOutputLength: SCRUBBED_LETTER_BYTES })
  } catch {
    // Whatever its fault is, the worker has stated it as the reason of the letter.
    return undefined
  }
}

/** Returns a request with its values replaced, or undefined if it is too large or cannot be read. */
function scrubParsed(
  scrubber: Scrubber,
  text: Buffer,
  message: DescMessage | undefined,
  contentType: string,
  used: ScrubbingRule[],
): Buffer | undefined {
  if (text.length > SCRUBBED_LETTER_BYTES) return undefined
  try {
    if (message !== undefined && contentType !== 'application/json') {
      const request = fromBinary(message, text)
      scrubPairs(scrubber, request, used)
      scrubMembers(scrubber, request, used)
      return Buffer.from(toBinary(message, request))
    }
    const value: unknown = JSON.parse(text.toString())
    scrubPairs(scrubber, value, used)
    return Buffer.from(JSON.stringify(scrubber.scrubJson(value, used)))
  } catch {
    // A letter is often one because its body cannot be read.
    return undefined
  }
}

/** Replaces the values of attributes whose keys match, in a message or its JSON. */
function scrubPairs(scrubber: Scrubber, value: unknown, used: ScrubbingRule[]): void {
  if (!isNode(value)) return
  const { key, value: held } = value as { key?: unknown; value?: unknown }
  const rule = typeof key === 'string' && isNode(held) ? scrubber.ruleOf(key) : undefined
  if (rule === undefined) {
    for (const member of Object.values(value)) scrubPairs(scrubber, member, used)
    return
  }
  used.push(rule)
  const stringValue = scrubber.replace(rule, () => textOf(held)) ?? ''
  const isMessage = '$typeName' in (held as object)
  Object.assign(value, {
    value: isMessage ? { ...(held as object), value: { case: 'stringValue', value: stringValue } } : { stringValue },
  })
}

/** Replaces parts of the texts of a message. */
function scrubMembers(scrubber: Scrubber, value: unknown, used: ScrubbingRule[]): void {
  if (!isNode(value)) return
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'string') scrubMembers(scrubber, member, used)
    else if (name !== '$typeName' && name !== 'case') {
      const text = scrubber.scrubString(member, [], used)
      if (text !== member) Object.assign(value, { [name]: text })
    }
  }
}

const isNode = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array)

/** Returns the text of an AnyValue, which has the hash that is stored. */
function textOf(held: unknown): string {
  const { stringValue, value } = held as { stringValue?: unknown; value?: { case?: string; value?: unknown } }
  const text = value?.case === 'stringValue' ? value.value : stringValue
  return typeof text === 'string'
    ? text
    : JSON.stringify(held, (_, part) => (typeof part === 'bigint' ? String(part) : part))
}
