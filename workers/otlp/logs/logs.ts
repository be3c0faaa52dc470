import { LogsTable } from '../../../clickhouse/tables/logs-table.ts'
import { RecordsBatch } from '../../exceptions/records-batch.ts'
import type { OtlpBatch } from '../protobuf/otlp-batch.ts'
import { PackedAttributes } from '../protobuf/packed-attributes.ts'
import { LogDecoder } from './log-decoder.ts'

/** Creates a batch of rows of `logs`, with their exceptions, decoded from ExportLogsServiceRequest messages. */
export function createLogsBatch(): OtlpBatch {
  const attributes = new PackedAttributes()
  const table = new LogsTable(attributes)
  return new RecordsBatch({
    table,
    createDecoder: exceptions => new LogDecoder(table, attributes, exceptions),
    minRecordBytes: 0,
  })
}
