import { GrowingBuffer } from '../native/growing-buffer.ts'
import { type Dictionary, LowCardinality } from '../native/low-cardinality.ts'
import { type Column, column } from '../native/table-buffer.ts'

/** Columns of `spans`, `logs` and `metric_points` that are equal for all records of a scope, filled in runs. */
export class ScopeColumns {
  /** Whether the table has `origin` in place of the columns of resource and scope. */
  readonly hasOrigin: boolean
  readonly workspaceId = new LowCardinality()
  readonly surfaceId = new LowCardinality()
  readonly receivedAt = new GrowingBuffer()
  readonly serviceName = new LowCardinality()
  readonly origin = new LowCardinality()
  readonly serviceVersion = new LowCardinality()
  readonly resource = new LowCardinality()
  readonly resourceDroppedAttributesCount = new GrowingBuffer()
  readonly resourceSchemaUrl = new LowCardinality()
  readonly scopeName = new LowCardinality()
  readonly scopeVersion = new LowCardinality()
  readonly scopeAttributes = new LowCardinality()
  readonly scopeSchemaUrl = new LowCardinality()
  readonly scopeDroppedAttributesCount = new GrowingBuffer()

  constructor(hasOrigin = false) {
    this.hasOrigin = hasOrigin
  }

  /** Returns the columns in the order of the tables. */
  columns(): Column[] {
    const own = [
      column('workspace_id', 'LowCardinality(String)', this.workspaceId),
      column('surface_id', 'LowCardinality(String)', this.surfaceId),
      column('received_at', "DateTime64(3, 'UTC')", this.receivedAt),
      column('service_name', 'LowCardinality(String)', this.serviceName),
    ]
    if (this.hasOrigin) return [...own, column('origin', 'LowCardinality(String)', this.origin)]
    return [
      ...own,
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

  /** Returns the dictionaries of the texts that origins are made of. They are no columns, and are rewound with the rows. */
  originParts(): Dictionary[] {
    const parts = [this.serviceVersion, this.resource, this.resourceSchemaUrl, this.scopeName, this.scopeVersion]
    return [...parts, this.scopeAttributes, this.scopeSchemaUrl].map(({ dictionary }) => dictionary)
  }
}
