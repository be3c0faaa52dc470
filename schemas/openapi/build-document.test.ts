import { hash } from 'node:crypto'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { allOperations } from '../http/all-operations.ts'
import { EXAMPLE } from '../http/example-values.ts'
import { problemsOf } from '../http/operation.ts'
import { PROBLEMS } from '../http/problems.ts'
import { EXAMPLE_MAP_TEXT } from '../http/source-maps/operations.ts'
import { EXAMPLE_EXPORT, EXAMPLE_EXPORT_BASE64 } from '../http/telemetry.ts'
import { ExportTraceServiceRequestSchema } from '../otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { buildOpenApiDocument } from './build-document.ts'

const operations = allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] })
const document = buildOpenApiDocument(operations)
const text = JSON.stringify(document)
const parsed = JSON.parse(text) as {
  components: { parameters: Record<string, Record<string, unknown>>; responses: Record<string, object> }
}

describe('the OpenAPI document', () => {
  test('passes the strictest rules of the linter', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] })
    const problems = await lintFromString({ source: text, config })
    expect(problems.map(({ message, location }) => `${location[0]?.pointer}: ${message}`)).toEqual([])
  })

  test('has version 3.0.4 of OpenAPI and 3.0.0 of the API', () => {
    expect(document).toMatchObject({ openapi: '3.0.4', info: { version: '3.0.0' } })
  })

  test('has at most 410 kB, because problems and common parameters are components', () => {
    expect(text.length).toBeLessThan(410_000)
    for (const methods of Object.values(document.paths)) {
      for (const { responses } of Object.values(methods)) {
        const problems = Object.entries(responses ?? {}).filter(([status]) => Number(status) >= 400)
        expect(problems.filter(([, response]) => !('$ref' in (response as object)))).toEqual([])
      }
    }
    // A caller handles a problem by one type: the common one, or that of OTLP, of Prometheus or of agents.
    const types = new Set(JSON.stringify(parsed.components.responses).match(/#\/components\/schemas\/\w+/g))
    expect([...types].map(name => name.split('/').at(-1))).toEqual([
      'DrainProblem',
      'OtlpStatus',
      'Problem',
      'PrometheusProblem',
      'McpProblem',
    ])
  })

  test('has patterns that every dialect of regular expressions reads, without a flag', () => {
    const patterns = new Set<string>()
    JSON.parse(text, (key, value) => {
      if (key === 'pattern' && typeof value === 'string') patterns.add(value)
      return value
    })
    expect(patterns.size).toBeGreaterThan(20)
    for (const pattern of patterns) {
      // No properties of Unicode, no groups but plain ones and no escapes that Python, Go or Rust do not have.
      expect(pattern).not.toMatch(/\\[pPkcuw]|\(\?[^:]/)
      expect(() => new RegExp(pattern)).not.toThrow()
    }
    const userId = new RegExp([...patterns].find(pattern => pattern.includes('x7f')) ?? '')
    expect([userId.test('user_local'), userId.test('a\u0000b')]).toEqual([true, false])
  })

  test('has a default of every limit', () => {
    const limits = [...text.matchAll(/"name":"limit","schema":(\{[^}]*\})/g)].map(([, schema]) =>
      JSON.parse(`${schema}`),
    )
    expect(limits.length).toBeGreaterThan(7)
    expect(limits.filter(({ default: byDefault, maximum }) => !(byDefault >= 1 && maximum >= byDefault))).toEqual([])
  })

  test('is the same every time it is built', () => {
    const again = buildOpenApiDocument(allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] }))
    expect(JSON.stringify(again)).toBe(text)
  })

  test('names one server: the public address, or the one that served it', () => {
    const serversOf = (publicUrl?: string) =>
      (buildOpenApiDocument(operations, publicUrl) as unknown as { servers: { url: string }[] }).servers
    expect(serversOf().map(({ url }) => url)).toEqual(['/'])
    expect(serversOf('https://telemetry.example').map(({ url }) => url)).toEqual(['https://telemetry.example'])
  })

  test('names the identity providers that the installation accepts', () => {
    const own = JSON.stringify(buildOpenApiDocument(allOperations({ identityProviders: ['Okta'] })))
    expect(own).toContain('"enum":["okta"]')
    expect(own).not.toContain('auth0')
  })

  test('maps the type of an identity source to its variant, also for a provider whose name has other characters', () => {
    const own = allOperations({ identityProviders: ['Okta', 'My IdP'] })
    const { components } = JSON.parse(JSON.stringify(buildOpenApiDocument(own)))
    const variant = (type: string, name: object) => ({
      type: 'object',
      properties: { type: { type: 'string', enum: [type] }, name: { type: 'string', ...name } },
      required: ['type', 'name'],
    })
    const reference = (name: string) => `#/components/schemas/${name}`
    expect(components.schemas.IdentifySource).toEqual({
      type: 'object',
      description: 'The identity provider.',
      discriminator: {
        propertyName: 'type',
        mapping: {
          okta: reference('IdentifySourceOkta'),
          'my idp': reference('IdentifySourceMy_20IdP'),
          custom: reference('IdentifySourceCustom'),
        },
      },
      oneOf: ['Custom', 'Okta', 'My_20IdP'].map(name => ({ $ref: reference(`IdentifySource${name}`) })),
    })
    expect(components.schemas).toMatchObject({
      IdentifySourceOkta: variant('okta', { enum: ['Okta'] }),
      IdentifySourceMy_20IdP: variant('my idp', { enum: ['My IdP'] }),
      IdentifySourceCustom: variant('custom', {}),
    })
  })

  test('documents every problem code', () => {
    const told = operations.flatMap(operation => problemsOf(operation).map(({ code }) => code))
    expect(new Set([...told, 'METHOD_NOT_ALLOWED'])).toEqual(new Set(Object.keys(PROBLEMS)))
  })

  test('gives every operation a unique id, all its path parameters, and a body with POST, PUT and PATCH', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, parameters, method, body } of operations) {
      const named = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)
      expect(Object.keys(parameters?.path?.shape ?? {}), path).toEqual(named)
      expect(body !== undefined, path).toBe(['POST', 'PUT', 'PATCH'].includes(method))
    }
  })

  test('has an example of every parameter, except those whose value depends on an earlier request, the body or the day', () => {
    const inline = Object.values(document.paths).flatMap(methods =>
      Object.values(methods).flatMap(({ parameters = [] }) => parameters),
    )
    const parameters = [...inline, ...Object.values(parsed.components.parameters)]
    const without = parameters.flatMap(({ name, example, $ref }) => ((example ?? $ref) === undefined ? [name] : []))
    // A page draws its id and counts its requests: a repeated example would be a repetition.
    const ofPages = ['page', 'sequence', 'session']
    expect(new Set(without)).toEqual(
      new Set(['content-encoding', 'idempotency-key', 'cursor', 'day', 'from', 'if-none-match', 'to', ...ofPages]),
    )
  })

  test('has no bounds of the number type, and no union of one schema', () => {
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
    'has examples of %s that its schemas accept',
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
  test('contain the same export in both encodings', () => {
    const decoded = fromBinary(ExportTraceServiceRequestSchema, Buffer.from(EXAMPLE_EXPORT_BASE64, 'base64'))
    const json = JSON.stringify(toJson(ExportTraceServiceRequestSchema, decoded, { enumAsInteger: true }))
    const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
    const expected = JSON.stringify(EXAMPLE_EXPORT)
      .replace(EXAMPLE.traceId, base64(EXAMPLE.traceId))
      .replace(EXAMPLE.spanId, base64(EXAMPLE.spanId))
    expect(JSON.parse(json)).toEqual(JSON.parse(expected))
  })

  test('contain the hash of the uploaded map', () => {
    expect(hash('sha256', EXAMPLE_MAP_TEXT)).toBe(EXAMPLE.mapSha256)
  })
})
