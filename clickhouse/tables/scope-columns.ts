import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { type Column, column } from '../native/table-buffer.ts'

/** Columns of `spans`, `logs` and `metric_points` that are equal for all records of a scope, filled in runs. */
export class ScopeColumns {
  readonly workspaceId = new LowCardinality()
  readonly surfaceId = new LowCardinality()
  readonly receivedAt = new GrowingBuffer()
  readonly serviceName = new LowCardinality()
  readonly serviceVersion = new LowCardinality()
  readonly resource = new LowCardinality()
  readonly resourceDroppedAttributesCount = new GrowingBuffer()
  readonly resourceSchemaUrl = new LowCardinality()
  readonly scopeName = new LowCardinality()
  readonly scopeVersion = new LowCardinality()
  readonly scopeAttributes = new LowCardinality()
  readonly scopeSchemaUrl = new LowCardinality()
  readonly scopeDroppedAttributesCount = new GrowingBuffer()

  /** Returns the columns in the order of the tables. */
  columns(): Column[] {
    return [
      column('workspace_id', 'LowCardinality(String)', this.workspaceId),
      column('surface_id', 'LowCardinality(String)', this.surfaceId),
      column('received_at', "DateTime64(3, 'UTC')", this.receivedAt),
      column('service_name', 'LowCardinality(String)', this.serviceName),
      column('service_version', 'LowCardinality(String)', this.serviceVersion),
      column('resource', 'LowCardinality(String)', this.resource),
      column('resource_dropped_attributes_count', 'UInt32', this.resourceDroppedAttributesCount),
      column('resource_schema_url', 'LowCardinality(String)', this.resourceSchemaUrl),
      column('scope_name', 'LowCardinality(String)', this.scopeName),
      column('scope_version', 'LowCardinality(String)', this.scopeVersion),
      column('scope_attributes', 'LowCardinality(String)', this.scopeAttributes),
      column('scope_schema_url', 'LowCardinality(String)', this.scopeSchemaUrl),
      column('scope_dropped_attributes_count', 'UInt32', this.scopeDroppedAttributesCount),
    ]
  }
}
