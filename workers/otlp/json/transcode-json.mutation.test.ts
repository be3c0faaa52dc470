import { isUtf8 } from 'node:buffer'
import { type DescMessage, fromBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { rounds } from '../../../test/support/length.ts'
import { otlpJson } from '../../../test/support/payloads/otlp-json.ts'
import { randomMessage } from '../../../test/support/payloads/random-message.ts'
import { type Random, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import { JSON_REFUSALS } from './json-refusals.ts'
import { createJsonTranscoder } from './transcode-json.ts'

const PAYLOADS = rounds(50_000)
const MAX_MS = 100
/** Bytes that are inserted into texts: all bytes with a meaning in JSON, and a few without. */
const PIECES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '\\u',
  '\\ud800',
  '0',
  '-',
  '1e9',
  '.',
  'null',
  'true',
  ' ',
  '\n',
  '\0',
  'é',
]
  .concat('{"kind":', '"traceId":"', '[[', ']]', '\xff', '9'.repeat(30), '"'.repeat(9))
  .map(piece => Buffer.from(piece, piece === '\xff' ? 'latin1' : 'utf8'))
const SIGNALS: readonly [signal: 'traces' | 'logs' | 'metrics', desc: DescMessage][] = [
  ['traces', ExportTraceServiceRequestSchema],
  ['logs', ExportLogsServiceRequestSchema],
  ['metrics', ExportMetricsServiceRequestSchema],
]

describe('the JSON transcoder', () => {
  it(`takes or refuses ${PAYLOADS} broken texts, at once, as JSON.parse does, and without a look past their end`, () => {
    const random = seededRandom(7)
    const originals = Array.from({ length: 300 }, (_, i) => {
      const [signal, desc] = SIGNALS[i % 3] as (typeof SIGNALS)[number]
      const message = randomMessage(desc, random)
      return { signal, desc, text: i % 2 === 0 ? otlpJson(desc, message) : otlpJson(desc, message, random) }
    }).filter(({ text }) => text.length > 100 && text.length < 6_000)
    // Each with its own memory of keys, and each given the text in other surroundings.
    const transcoders = [createJsonTranscoder(), createJsonTranscoder()] as const
    const outcomes = new Map<string, number>()
    let slowestMs = 0
    for (let i = 0; i < PAYLOADS; i++) {
      const { signal, desc, text } = originals[i % originals.length] as (typeof originals)[number]
      const body = mutate(text, random)
      const startedAt = process.threadCpuUsage()
      const result = transcoders[0].transcode(signal, within(body, '"}]'))
      const { user, system } = process.threadCpuUsage(startedAt)
      slowestMs = Math.max(slowestMs, (user + system) / 1_000)
      const other = transcoders[1].transcode(signal, within(body, '1e\\'))
      expect(other.ok).toBe(result.ok)
      if (result.ok && other.ok) {
        expect(result.message.equals(other.message)).toBe(true)
        if (isUtf8(body)) fromBinary(desc, result.message)
        if (body.length > 0) JSON.parse(body.toString())
      } else if (!result.ok) {
        expect(other).toEqual(result)
        expect(Object.keys(JSON_REFUSALS)).toContain(result.reason)
        if (result.reason === 'invalid_json') expect(() => JSON.parse(body.toString()), body.toString()).toThrow()
      }
      const outcome = result.ok ? 'ok' : result.reason
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
    for (const outcome of ['ok', 'invalid_json']) {
      expect(outcomes.get(outcome), outcome).toBeGreaterThan(PAYLOADS / 200)
    }
    expect(slowestMs).toBeLessThan(MAX_MS)
  })
})

/** A few pieces put in or over others, bits flipped, parts left out or doubled, or the end cut off. */
function mutate(original: Buffer, random: Random): Buffer {
  let body = Buffer.from(original)
  for (let places = 1 + Math.floor(random() * 2); places > 0; places--) {
    const at = Math.floor(random() * body.length)
    const kind = random()
    if (kind < 0.25) {
      if (body.length > 0) body[at] = (body[at] as number) ^ (1 << Math.floor(random() * 8))
    } else if (kind < 0.7) {
      const piece = PIECES[Math.floor(random() * PIECES.length)] as Buffer
      const over = random() < 0.5 ? piece.length : 0
      body = Buffer.concat([body.subarray(0, at), piece, body.subarray(at + over)])
    } else {
      const until = at + Math.floor(random() * 30)
      if (kind < 0.8) body = Buffer.concat([body.subarray(0, at), body.subarray(until)])
      else if (kind < 0.95) body = Buffer.concat([body.subarray(0, until), body.subarray(at)])
      else body = body.subarray(0, at)
    }
  }
  return body
}

/** The bytes as a part of a larger buffer. */
function within(body: Buffer, surroundings: string): Buffer {
  const fill = Buffer.from(surroundings.repeat(8))
  return Buffer.concat([fill, body, fill]).subarray(fill.length, fill.length + body.length)
}
