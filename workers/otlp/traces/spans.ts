import { SpansTable } from '../../../clickhouse/tables/spans-table.ts'
import { RecordsBatch } from '../../exceptions/records-batch.ts'
import { Attributes } from '../protobuf/attributes.ts'
import type { OtlpBatch } from '../protobuf/otlp-batch.ts'
import { SpanDecoder } from './span-decoder.ts'

/** Size of a span that has only its two ids. */
const MIN_SPAN_BYTES = 28

/** Creates a batch of rows of `spans`, with their exceptions, decoded from ExportTraceServiceRequest messages. */
export function createSpansBatch(): OtlpBatch {
  const attributes = { span: new Attributes(), event: new Attributes(), link: new Attributes() }
  const table = new SpansTable(attributes.span, attributes.event, attributes.link)
  return new RecordsBatch({
    table,
    createDecoder: exceptions => new SpanDecoder(table, attributes, exceptions),
    minRecordBytes: MIN_SPAN_BYTES,
  })
}
