/** Columns of spans and log records that are equal for all records of a scope. */
export interface ScopeRow {
  readonly serviceName: string
  /** A JSON object, or empty. */
  readonly resourceJson: string
  readonly resourceDroppedAttributesCount: number
  readonly resourceSchemaUrl: string
  readonly scopeName: string
  readonly scopeVersion: string
  /** A JSON object, or empty. */
  readonly scopeAttributes: string
  readonly scopeSchemaUrl: string
  readonly scopeDroppedAttributesCount: number
}
