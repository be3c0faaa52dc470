import type { z } from 'zod'
import type { AttributeColumns, AttributeType } from '../../clickhouse/queries/attributes/attribute-columns.ts'
import type { ScopeRow } from '../../clickhouse/queries/attributes/scope-columns.ts'
import type { jsonObjectSchema } from '../../schemas/http/fields.ts'
import { exactNumber, parseJson } from './parse-json.ts'

/** An attribute as a response shows it. */
interface PresentedAttribute {
  readonly key: string
  readonly type: AttributeType
  readonly value: string
}

/** Returns attributes as a response shows them, in the order in which they were sent. */
export function presentAttributes([keys, values, types]: AttributeColumns): PresentedAttribute[] {
  return keys.map((key, i) => ({ key, type: types[i] ?? 'empty', value: values[i] ?? '' }))
}

/** Returns the resource and the scope of a span or log record as a response shows them. */
export function presentScope(row: ScopeRow) {
  return {
    resource: {
      attributes: jsonObject(row.resourceJson),
      droppedAttributesCount: row.resourceDroppedAttributesCount,
      schemaUrl: row.resourceSchemaUrl,
    },
    scope: {
      name: row.scopeName,
      version: row.scopeVersion,
      attributes: jsonObject(row.scopeAttributes),
      droppedAttributesCount: row.scopeDroppedAttributesCount,
      schemaUrl: row.scopeSchemaUrl,
    },
  }
}

/** Parses attributes that are stored as one JSON object. An empty text is what a column has for rows without it. */
function jsonObject(json: string): z.infer<typeof jsonObjectSchema> {
  return json === '' ? {} : (parseJson(json, exactNumber) as z.infer<typeof jsonObjectSchema>)
}
