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

/** The columns of `ScopeRow`. */
export const SCOPE_COLUMNS = `
  service_name AS serviceName, resource AS resourceJson,
  resource_dropped_attributes_count AS resourceDroppedAttributesCount, resource_schema_url AS resourceSchemaUrl,
  scope_name AS scopeName, scope_version AS scopeVersion, scope_attributes AS scopeAttributes,
  scope_schema_url AS scopeSchemaUrl, scope_dropped_attributes_count AS scopeDroppedAttributesCount`
