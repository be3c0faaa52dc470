import type { Signal } from '../../../schemas/queues/names.ts'
import type { RowBatch } from '../../batch/row-batch.ts'
import type { JsonTranscoder } from './transcode-json.ts'

/** A batch that takes both encodings: JSON is rewritten as protobuf first, so that there is one decoder and one truth. */
export function acceptJson(signal: Signal, rows: RowBatch, transcoder: JsonTranscoder): RowBatch {
  return {
    get rows() {
      return rows.rows
    },
    get bytes() {
      return rows.bytes
    },
    append(frame, body) {
      if (frame.contentType !== 'application/json') return rows.append(frame, body)
      const transcoded = transcoder.transcode(signal, body)
      return transcoded.ok ? rows.append(frame, transcoded.message) : transcoded
    },
    tables: () => rows.tables(),
    stackRequests: () => rows.stackRequests?.() ?? [],
    finished: () => rows.finished?.(),
    reset: () => rows.reset(),
  }
}
