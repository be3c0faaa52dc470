import { RowsTooLarge } from '../../../clickhouse/native/rows-too-large.ts'
import { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import { type AppendResult, blocksOf, type RowBatch } from '../../batch/row-batch.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { OriginWriter } from '../protobuf/origin-writer.ts'
import { type PayloadOrigin, Refusal, type RejectedCounts } from '../protobuf/refusal.ts'
import { EmbeddedMessage } from '../protobuf/resource-cache.ts'
import { WireCursor } from '../protobuf/wire.ts'
import { MetricDecoder } from './metric-decoder.ts'
import { SeriesOrigin } from './series-origin.ts'

/**
 * Rows of `metric_points`, one per data point, from ExportMetricsServiceRequest messages, in one pass from wire bytes to
 * column buffers. What protobuf lets follow the points but must be known before them (the resource, the scope, a
 * metric's name and temporality) is skimmed for first.
 */
export function createMetricsBatch(): RowBatch {
  const attributes = { point: new Attributes(), exemplar: new Attributes() }
  const table = new MetricPointsTable(attributes.point, attributes.exemplar)
  const { buffer } = table
  const decoder = new MetricDecoder(table, attributes)
  const origin = new OriginWriter(table.origin)
  const seriesOrigin = new SeriesOrigin(table.origin)
  let rejected: RejectedCounts = {}

  function appendRequest(body: Buffer): void {
    const wire = new WireCursor(body)
    for (let pos = 0; pos < body.length; ) {
      const tag = wire.readField(pos, body.length)
      pos = wire.next
      if (tag === 0x0a) appendResourceMetrics(wire, wire.start, pos)
    }
  }

  /** ResourceMetrics: `Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; string schema_url = 3`. */
  function appendResourceMetrics(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === 0x0a) message.add(contentStart, pos)
      else if (tag === 0x1a) schemaUrl = wire.bytes.toString('utf8', contentStart, pos)
    }
    seriesOrigin.beginResource(origin.beginResource(message, schemaUrl))
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) appendScopeMetrics(wire, wire.start, pos)
    }
  }

  /** ScopeMetrics: `InstrumentationScope scope = 1; repeated Metric metrics = 2; string schema_url = 3`. */
  function appendScopeMetrics(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === 0x0a) message.add(contentStart, pos)
      else if (tag === 0x1a) schemaUrl = wire.bytes.toString('utf8', contentStart, pos)
    }
    const identity = seriesOrigin.ofScope(origin.beginScope(message, schemaUrl))
    const firstRow = buffer.rows
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) decoder.append(wire, wire.start, pos, identity, rejected)
    }
    origin.fill(buffer.rows - firstRow)
  }

  function append(frame: PayloadOrigin, body: Buffer): AppendResult {
    const rowsBefore = buffer.rows
    rejected = {}
    buffer.mark()
    try {
      origin.beginPayload(frame)
      seriesOrigin.beginPayload(frame)
      decoder.beginPayload()
      appendRequest(body)
      table.levelColumns()
    } catch (error) {
      table.rewind()
      clearCaches()
      if (error instanceof Refusal) return { ok: false, reason: error.reason }
      if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
      throw error
    }
    return { ok: true, rows: buffer.rows - rowsBefore, rejected }
  }

  function clearCaches(): void {
    origin.clearCache()
    decoder.clearCache()
  }

  return {
    append,
    get rows() {
      return buffer.rows
    },
    get bytes() {
      return buffer.bytes
    },
    tables: () => blocksOf([buffer]),
    reset() {
      table.reset()
      clearCaches()
    },
  }
}
