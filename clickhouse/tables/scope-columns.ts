import { GrowingBuffer } from '../native/growing-buffer.ts'
import { type Dictionary, LowCardinality } from '../native/low-cardinality.ts'
import { type Column, column } from '../native/table-buffer.ts'

/** Columns of `spans`, `logs` and `metric_points` that are equal for all records of a scope, filled in runs. */
export class ScopeColumns {
  readonly workspaceId = new LowCardinality()
  readonly surfaceId = new LowCardinality()
  readonly receivedAt = new GrowingBuffer()
  readonly serviceName = new LowCardinality()
  readonly origin = new LowCardinality()
  /** The texts that origins are made of. They are no columns. */
  readonly serviceVersion = new LowCardinality()
  readonly resource = new LowCardinality()
  readonly resourceSchemaUrl = new LowCardinality()
  readonly scopeName = new LowCardinality()
  readonly scopeVersion = new LowCardinality()
  readonly scopeAttributes = new LowCardinality()
  readonly scopeSchemaUrl = new LowCardinality()

  /** Returns the columns in the order of the tables. */
  columns(): Column[] {
    return [
      column('workspace_id', 'LowCardinality(String)', this.workspaceId),
      column('surface_id', 'LowCardinality(String)', this.surfaceId),
      column('received_at', "DateTime64(3, 'UTC')", this.receivedAt),
      column('service_name', 'LowCardinality(String)', this.serviceName),
      column('origin', 'LowCardinality(String)', this.origin),
    ]
  }

  /** Returns the dictionaries of the texts that origins are made of, which are rewound with the rows. */
  originParts(): Dictionary[] {
    const parts = [this.serviceVersion, this.resource, this.resourceSchemaUrl, this.scopeName, this.scopeVersion]
    return [...parts, this.scopeAttributes, this.scopeSchemaUrl].map(({ dictionary }) => dictionary)
  }
}
