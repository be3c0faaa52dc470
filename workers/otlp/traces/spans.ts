import { SpansTable } from '../../../clickhouse/tables/spans-table.ts'
import { RecordsBatch } from '../../exceptions/records-batch.ts'
import type { RowBatch } from '../../sink/row-batch.ts'
import { countSpans } from '../../span-stats/count-spans.ts'
import { piecesOfStats } from '../../span-stats/stats-records.ts'
import type { OtlpBatch } from '../protobuf/otlp-batch.ts'
import { PackedAttributes } from '../protobuf/packed-attributes.ts'
import { SpanDecoder } from './span-decoder.ts'

/** Size of a span that has only its two ids. */
const MIN_SPAN_BYTES = 28

/** Creates a batch of rows of `spans`, with their exceptions, decoded from ExportTraceServiceRequest messages. */
export function createSpansBatch(): OtlpBatch & Pick<RowBatch, 'spanStats'> {
  const attributes = new PackedAttributes()
  const table = new SpansTable(attributes)
  const batch = new RecordsBatch({
    table,
    createDecoder: exceptions => new SpanDecoder(table, attributes, exceptions),
    minRecordBytes: MIN_SPAN_BYTES,
  })
  return Object.assign(batch, { spanStats: () => piecesOfStats(countSpans(table)) })
}
