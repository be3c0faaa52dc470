import { z } from 'zod'

/** An OpenAPI 3.0 schema object. */
export type SchemaObject = Record<string, unknown>

/** Collects the schemas that have an id (`.meta({ id })`) as components, each once. */
export class Components {
  readonly schemas: Record<string, SchemaObject> = {}

  /** The schema as it stands in the document; what has an id is referred to. `input`: what a client may send. */
  schemaOf(schema: z.ZodType, io: 'input' | 'output'): SchemaObject {
    const { definitions = {}, ...own } = z.toJSONSchema(schema, {
      target: 'openapi-3.0',
      io,
      unrepresentable: 'any',
      override: ({ jsonSchema }) => tidy(jsonSchema),
    }) as SchemaObject & { definitions?: Record<string, SchemaObject> }
    const settle = (schema: unknown) => settleReferences(schema, definitions)
    for (const [id, definition] of Object.entries(definitions)) {
      if (!isAnyJson(id)) this.#add(id, settle(definition) as SchemaObject)
    }
    return settle(own) as SchemaObject
  }

  #add(id: string, { id: _, ...definition }: SchemaObject): void {
    const known = this.schemas[id]
    if (known === undefined) this.schemas[id] = definition
    else if (JSON.stringify(known) !== JSON.stringify(definition)) throw new Error(`two schemas have the id ${id}`)
  }
}

const DEFINITIONS = '#/definitions/'

/** What zod calls a schema that refers to itself and has no name of its own. `z.json()` is the only one. */
const isAnyJson = (id: string) => id.startsWith('__schema')

/** The schema with its references to components, as far as OpenAPI 3.0 can have them. */
function settleReferences(schema: unknown, definitions: Readonly<Record<string, SchemaObject>>): unknown {
  const settle = (part: unknown) => settleReferences(part, definitions)
  if (Array.isArray(schema)) return schema.map(settle)
  if (!isObject(schema)) return schema
  const { $ref, allOf, ...rest } = schema
  if (typeof $ref === 'string') {
    const id = $ref.slice(DEFINITIONS.length)
    return isAnyJson(id) ? { description: 'Any JSON value.' } : { $ref: `#/components/schemas/${id}` }
  }
  const settled = Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, settle(part)]))
  if (!Array.isArray(allOf)) return settled
  const [first] = allOf as [SchemaObject]
  // A reference has no siblings in 3.0, and what it refers to does not become nullable beside it.
  if (schema.nullable === true) return { ...(settle(definitionOf(first, definitions)) as SchemaObject), ...settled }
  return Object.keys(settled).length === 0 ? settle(first) : { ...settled, allOf: allOf.map(settle) }
}

function definitionOf({ $ref }: SchemaObject, definitions: Readonly<Record<string, SchemaObject>>): SchemaObject {
  const { id: _, ...definition } = definitions[String($ref).slice(DEFINITIONS.length)] ?? {}
  return definition
}

/** Formats that say what an expression of hundreds of characters says. */
const FORMATS_FOR_PATTERNS: readonly unknown[] = ['date-time', 'email', 'uuid']
const INT32_MAX = 2 ** 31 - 1

/** Leaves out what tells a reader nothing: zod's bounds of every integer, and expressions behind a format. */
function tidy(schema: SchemaObject): void {
  if (FORMATS_FOR_PATTERNS.includes(schema.format)) delete schema.pattern
  if (schema.type === 'integer') tidyInteger(schema)
  if (isObject(schema.properties)) {
    // What must be absent is not among the properties, and no others are taken.
    for (const [name, property] of Object.entries(schema.properties)) {
      if (isObject(property) && 'not' in property) delete schema.properties[name]
    }
  }
}

function tidyInteger(schema: SchemaObject): void {
  // Of the digits that a query parameter is read from.
  delete schema.pattern
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  // Without it, languages that have several integers take one of 32 bits.
  if (typeof schema.maximum !== 'number' || schema.maximum > INT32_MAX) schema.format = 'int64'
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null
}
