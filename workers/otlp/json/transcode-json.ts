import { RowsTooLarge } from '../../../clickhouse/native/growing-buffer.ts'
import type { Signal } from '../../../schemas/queues/names.ts'
import { requestColumnBytes } from '../../sink/job-limits.ts'
import type { RowBatch } from '../../sink/row-batch.ts'
import { JsonRefusal, type JsonRefusalReason } from './json-refusals.ts'
import { REQUEST_TYPES } from './json-schema.ts'
import { JsonWalk } from './json-walk.ts'

/** The rewritten message, or the reason why the payload is refused. */
type TranscodeResult =
  | {
      ok: true
      /** A view that is valid until the next call. */
      message: Buffer
      /** Values outside of records that do not fit their fields. They are left out. */
      leftOut: number
    }
  | { ok: false; reason: JsonRefusalReason }

/** Rewrites OTLP/JSON as OTLP/protobuf. */
interface JsonTranscoder {
  /** Returns the Export…ServiceRequest of an OTLP/JSON body as protobuf. Never throws for bad input. */
  transcode(otlpSignal: keyof typeof REQUEST_TYPES, body: Buffer): TranscodeResult
}

/**
 * Creates a transcoder from OTLP/JSON to OTLP/protobuf. It makes one pass over the bytes, without an object per value.
 * The mapping is protobuf's JSON mapping with the exceptions of OTLP (OTLP specification, "JSON Protobuf Encoding") and
 * the leniencies of docs/api/otlp.md#json. If a key repeats, the last value counts, messages are merged and arrays are
 * concatenated.
 */
export function createJsonTranscoder(): JsonTranscoder {
  const walk = new JsonWalk()
  return {
    transcode(otlpSignal, body) {
      try {
        const message = walk.run(REQUEST_TYPES[otlpSignal], body)
        return { ok: true, message, leftOut: walk.misfits }
      } catch (error) {
        if (error instanceof JsonRefusal) return { ok: false, reason: error.reason }
        if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
        throw error
      } finally {
        walk.release()
      }
    },
  }
}

/**
 * Wraps a batch so that it accepts both encodings. JSON is first rewritten as protobuf, so there is one decoder and
 * both encodings give the same rows.
 */
export function acceptJson(otlpSignal: Signal, rows: RowBatch, transcoder: JsonTranscoder): RowBatch {
  return {
    get rows() {
      return rows.rows
    },
    passedOn: rows.passedOn,
    get bytes() {
      return rows.bytes
    },
    get capacityBytes() {
      return rows.capacityBytes
    },
    append(frame, body, limitBytes = requestColumnBytes(body.length)) {
      if (frame.contentType !== 'application/json') return rows.append(frame, body, limitBytes)
      const transcoded = transcoder.transcode(otlpSignal, body)
      if (!transcoded.ok) return transcoded
      const result = rows.append(frame, transcoded.message, limitBytes)
      const { leftOut } = transcoded
      if (leftOut === 0) return result
      if (result.ok) {
        return { ...result, rejected: { ...result.rejected, json_value_left_out: { count: leftOut, indexes: [] } } }
      }
      return result.reason === 'no_records' ? { ok: false, reason: 'invalid_json_value' } : result
    },
    markJob: () => rows.markJob(),
    rewindJob: () => rows.rewindJob(),
    tables: () => rows.tables(),
    spanStats: () => rows.spanStats?.() ?? [],
    reset: () => rows.reset(),
    shrink: () => rows.shrink(),
  }
}
