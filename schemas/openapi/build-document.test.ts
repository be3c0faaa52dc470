import { hash } from 'node:crypto'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { allOperations } from '../http/all-operations.ts'
import { EXAMPLE } from '../http/example-values.ts'
import { PROBLEMS } from '../http/problems.ts'
import { EXAMPLE_MAP_TEXT } from '../http/source-maps/examples.ts'
import { EXAMPLE_EXPORT, EXAMPLE_EXPORT_BASE64 } from '../http/telemetry/examples.ts'
import { ExportTraceServiceRequestSchema } from '../otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { buildOpenApiDocument } from './build-document.ts'

const operations = allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] })
const document = buildOpenApiDocument(operations)
const text = JSON.stringify(document)

describe('the OpenAPI document', () => {
  test('passes the strictest rules of a linter without a word', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] })
    const problems = await lintFromString({ source: text, config })
    expect(problems.map(({ message, location }) => `${location[0]?.pointer}: ${message}`)).toEqual([])
  })

  test('is of version 3.0.4 of the specification and 3.0.0 of the interface', () => {
    expect(document).toMatchObject({ openapi: '3.0.4', info: { version: '3.0.0' } })
  })

  test('is the same whenever it is made', () => {
    const again = buildOpenApiDocument(allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] }))
    expect(JSON.stringify(again)).toBe(text)
  })

  test('names the identity providers that the installation takes', () => {
    const own = JSON.stringify(buildOpenApiDocument(allOperations({ identityProviders: ['Okta'] })))
    expect(own).toContain('"enum":["okta"]')
    expect(own).not.toContain('auth0')
  })

  test('tells of every problem code', () => {
    const told = operations.flatMap(({ problems }) => problems.map(({ code }) => code))
    expect(new Set([...told, 'METHOD_NOT_ALLOWED'])).toEqual(new Set(Object.keys(PROBLEMS)))
  })

  test('says of every operation how it is called and what comes back', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, parameters, method, body } of operations) {
      const named = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)
      expect(Object.keys(parameters?.path?.shape ?? {}), path).toEqual(named)
      expect(body !== undefined, path).toBe(method === 'POST' || method === 'PUT')
    }
  })

  test('has an example of every parameter but those whose value only an answer before or the body gives', () => {
    const without = Object.values(document.paths).flatMap(methods =>
      Object.values(methods).flatMap(({ parameters = [] }) =>
        (parameters as { name: string; example?: unknown }[]).flatMap(({ name, example }) =>
          example === undefined ? [name] : [],
        ),
      ),
    )
    expect(new Set(without)).toEqual(new Set(['content-encoding', 'cursor', 'if-none-match']))
  })

  test('has no bounds that only the number type has, and no union with nothing to choose', () => {
    expect(text).not.toContain(String(Number.MAX_SAFE_INTEGER))
    expect(text).not.toMatch(/"(anyOf|oneOf)":\[[^,\]]*\]/)
    expect(text).not.toContain('"not":')
  })

  test('gives every component a name from its schema, one for what is sent and what is returned', () => {
    const names = Object.keys((JSON.parse(text) as { components: { schemas: object } }).components.schemas)
    expect(names.filter(name => /^__|Output$/.test(name))).toEqual([])
  })

  test('marks only typed schemas as nullable, because OpenAPI 3.0 ignores the mark elsewhere', () => {
    const untyped: unknown[] = []
    JSON.parse(text, (_, value) => {
      if (value?.nullable === true && value.type === undefined) untyped.push(value)
      return value
    })
    expect(untyped).toEqual([])
  })

  test.each(operations.map(operation => [operation.operationId, operation] as const))(
    'has examples of %s that its schemas take',
    (_, { body, success, parameters }) => {
      const contents = [...Object.values(body?.contents ?? {}), ...Object.values(success.contents)]
      for (const { schema, example } of contents) {
        expect(example).toBeDefined()
        if (schema) expect(schema.safeParse(example).error).toBeUndefined()
      }
      for (const schema of Object.values(parameters?.path?.shape ?? {})) {
        const { example } = (schema as typeof schema & { meta(): { example?: unknown } }).meta()
        expect(schema.safeParse(example).success).toBe(true)
      }
    },
  )
})

describe('the examples', () => {
  test('are one export in both of its encodings', () => {
    const decoded = fromBinary(ExportTraceServiceRequestSchema, Buffer.from(EXAMPLE_EXPORT_BASE64, 'base64'))
    const json = JSON.stringify(toJson(ExportTraceServiceRequestSchema, decoded, { enumAsInteger: true }))
    const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
    const expected = JSON.stringify(EXAMPLE_EXPORT)
      .replace(EXAMPLE.traceId, base64(EXAMPLE.traceId))
      .replace(EXAMPLE.spanId, base64(EXAMPLE.spanId))
    expect(JSON.parse(json)).toEqual(JSON.parse(expected))
  })

  test('name the hash of the map that they upload', () => {
    expect(hash('sha256', EXAMPLE_MAP_TEXT)).toBe(EXAMPLE.mapSha256)
  })
})
