import { z } from 'zod'
import type { Content, Operation } from '../http/operation.ts'
import { TAGS } from '../http/operation.ts'
import { headerComponents, headersOf } from './headers.ts'
import { INTRODUCTION } from './introduction.ts'
import { problemResponses } from './problem-responses.ts'
import { Components, type SchemaObject } from './schema-of.ts'
import { SECURITY_SCHEMES } from './security.ts'

/** The OpenAPI 3.0.4 document of these operations. */
export function buildOpenApiDocument(operations: readonly Operation[]) {
  const components = new Components()
  const headers = headerComponents(components)
  const paths: Record<string, Record<string, SchemaObject>> = {}
  for (const operation of operations) {
    const path = templateOf(operation.path)
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation, components) }
  }
  return {
    openapi: '3.0.4',
    info: {
      title: 'Penstock',
      version: '3.0.0',
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/', description: 'The address that this document came from.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, headers, schemas: components.schemas },
  }
}
export type OpenApiDocument = ReturnType<typeof buildOpenApiDocument>

/** A path as OpenAPI has it: `/v3/findings/{findingId}`. */
export function templateOf(path: string): string {
  return path.replaceAll(/:([A-Za-z]+)/g, '{$1}')
}

function describe(operation: Operation, components: Components): SchemaObject {
  const { operationId, summary, tag, credentials, body, success, isConditional } = operation
  const description = descriptionOf(operation)
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    security: credentials.map(credential => ({ [credential]: [] })),
    ...parametersOf(operation, components),
    ...(body && {
      requestBody: {
        required: true,
        ...(body.description && { description: body.description }),
        content: contentsOf(body.contents, 'input', components),
      },
    }),
    responses: {
      [success.status]: {
        description: success.description,
        ...headersOf(operation, success.status),
        content: contentsOf(success.contents, 'output', components),
      },
      ...(isConditional && { 304: { description: 'As it was.', ...headersOf(operation, 304) } }),
      ...problemResponses(operation, components),
    },
  }
}

function descriptionOf({ description, permission }: Operation): string {
  const needs = permission && `Needs the permission \`${permission}\`.`
  return [description, needs].filter(Boolean).join(' ')
}

const ifNoneMatch = z.object({
  'if-none-match': z.string().optional().meta({ description: 'The `ETag` of the answer that the client has.' }),
})

function parametersOf({ parameters = {}, isConditional }: Operation, components: Components) {
  const places = Object.entries({ ...parameters, ...(isConditional && { header: ifNoneMatch }) })
  const all = places.flatMap(([place, object]) =>
    Object.entries(object.shape).map(([name, schema]) => {
      const { description, example, ...rest } = components.schemaOf(schema as z.ZodType, 'input')
      const required = place === 'path' || !(schema as z.ZodType).safeParse(undefined).success
      return {
        name,
        in: place,
        required,
        ...(description ? { description } : {}),
        schema: rest,
        ...(example === undefined ? {} : { example }),
      }
    }),
  )
  return all.length === 0 ? {} : { parameters: all }
}

function contentsOf(contents: Readonly<Record<string, Content>>, io: 'input' | 'output', components: Components) {
  return Object.fromEntries(
    Object.entries(contents).map(([mediaType, { schema, example }]) => [
      mediaType,
      { schema: schema ? components.schemaOf(schema, io) : { type: 'string', format: 'binary' }, example },
    ]),
  )
}
