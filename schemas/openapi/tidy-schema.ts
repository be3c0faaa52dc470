import { DEFAULT } from '../http/fields.ts'

/** An OpenAPI 3.0 schema object. */
export type SchemaObject = Record<string, unknown>

/** Formats that replace an expression of hundreds of characters. */
const FORMATS_FOR_PATTERNS: readonly unknown[] = ['date', 'date-time', 'email', 'uuid']
const INT32_MAX = 2 ** 31 - 1

/**
 * Removes from a schema what is useless to a reader: zod's bounds of every integer, and expressions behind a format. Responses
 * may get further members (docs/api/requests.md#versions), so their schemas exclude none.
 */
export function tidySchema(schema: SchemaObject, io: 'input' | 'output'): void {
  if (io === 'output' && schema.additionalProperties === false) delete schema.additionalProperties
  if (FORMATS_FOR_PATTERNS.includes(schema.format)) delete schema.pattern
  if (DEFAULT in schema) {
    schema.default = schema[DEFAULT]
    delete schema[DEFAULT]
  }
  if (schema.type === 'integer') tidyInteger(schema)
  // OpenAPI 3.0 accepts null only if it is among the values too.
  if (schema.nullable && Array.isArray(schema.enum) && !schema.enum.includes(null)) schema.enum = [...schema.enum, null]
  unwrapReference(schema)
  const { properties } = schema
  if (typeof properties !== 'object' || properties === null) return
  // A property that must be absent need not be listed: no other properties are allowed there.
  for (const [name, property] of Object.entries(properties)) {
    if ('not' in property) delete (properties as SchemaObject)[name]
  }
}

/** Replaces an `allOf` that contains one reference, and nothing beside it, by the reference. */
function unwrapReference(schema: SchemaObject): void {
  const { allOf } = schema
  if (!Array.isArray(allOf) || allOf.length !== 1 || Object.keys(schema).length !== 1) return
  delete schema.allOf
  Object.assign(schema, allOf[0])
}

function tidyInteger(schema: SchemaObject): void {
  // The pattern of the digits that a query parameter is read from.
  delete schema.pattern
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  // Without a format, generators for languages with several integer types choose 32 bits.
  if (typeof schema.maximum !== 'number' || schema.maximum > INT32_MAX) schema.format = 'int64'
}
