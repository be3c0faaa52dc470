import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { MIB } from '../../../schemas/units.ts'
import type { ContentType } from '../../../shared/queue/payload-frame.ts'
import { bareSpans, emptyExemplars, emptyLogRecords, emptyPoints, field } from './bodies.ts'
import type { FuzzedEncoding, FuzzedSignal } from './fuzz-inputs.ts'

/** A small body that becomes a large one. */
export interface Bomb {
  readonly otlpSignal: FuzzedSignal
  readonly contentType: ContentType
  readonly encoding: FuzzedEncoding
  readonly body: Buffer
}

/** Makes bodies of some KB that are decompressed to 4 to 70 MiB, or decoded to rows that are much wider. */
export function bombs(): Bomb[] {
  const zeros = Buffer.alloc(70 * MIB)
  const filled = field(1, field(9, Buffer.alloc(32 * MIB, 'a')))
  const bomb = (otlpSignal: FuzzedSignal, encoding: FuzzedEncoding, body: Buffer): Bomb => ({
    ...{ otlpSignal, encoding, body },
    contentType: 'application/x-protobuf',
  })
  const jsonBomb = (otlpSignal: FuzzedSignal, body: Buffer): Bomb => ({
    ...{ otlpSignal, encoding: 'gzip', body: gzipSync(body) },
    contentType: 'application/json',
  })
  return [
    bomb('traces', 'gzip', gzipSync(zeros)),
    bomb('logs', 'deflate', deflateSync(zeros)),
    bomb('logs', 'deflate', deflateRawSync(zeros)),
    bomb('metrics', 'zstd', zstdCompressSync(zeros)),
    bomb('traces', 'zstd', zstdCompressSync(filled)),
    bomb('traces', 'zstd', repeated(zstdCompressSync(Buffer.alloc(0)), 1_000)),
    bomb('metrics', 'gzip', repeated(gzipSync(Buffer.alloc(0)), 50_000)),
    bomb('traces', 'gzip', smallSize(gzipSync(zeros))),
    bomb('traces', 'gzip', gzipSync(bareSpans(200_000))),
    bomb('logs', 'gzip', gzipSync(emptyLogRecords(2_000_000))),
    bomb('metrics', 'gzip', gzipSync(emptyPoints(1_000_000))),
    bomb('metrics', 'gzip', gzipSync(emptyExemplars(4_000_000))),
    jsonBomb('traces', Buffer.alloc(16 * MIB, '[')),
    jsonBomb(
      'logs',
      Buffer.concat([Buffer.from('{"resourceLogs":['), Buffer.alloc(12 * MIB, '{},'), Buffer.from('{}]}')]),
    ),
    jsonBomb(
      'metrics',
      Buffer.concat([Buffer.from('{"resourceMetrics":"'), Buffer.alloc(30 * MIB, '\\n'), Buffer.from('"}')]),
    ),
  ]
}

/** Makes replay chunks of some KB that are decompressed to 99 MiB, or to millions of events. */
export function chunkBombs(): Buffer[] {
  return [
    gzipSync(Buffer.alloc(99 * MIB, ' ')),
    gzipSync(Buffer.alloc(30 * MIB, '{}\n')),
    gzipSync(Buffer.alloc(20 * MIB, `${packed(`{"a":"${'a'.repeat(15 * MIB)}"}`)}\n`)),
  ]
}

/** Returns an event as `@rrweb/packer` packs it. */
const packed = (event: string) => JSON.stringify(deflateSync(event).toString('latin1'))

const repeated = (member: Buffer, count: number) => Buffer.concat(Array.from({ length: count }, () => member))

/** Adds a small member to gzip bytes, so that they state a decoded size of a few bytes. */
const smallSize = (bytes: Buffer) => Buffer.concat([bytes, gzipSync(Buffer.from('end'))])
