import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

/** A service as a client knows it that has only its OpenAPI document. */
export interface DescribedService {
  readonly operations: readonly DescribedOperation[]
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>
  /** Returns the differences between a response and the document; empty if there are none. */
  faultsOf(operation: DescribedOperation, answer: ReceivedAnswer): string[]
}

/** Security scheme of the document. */
type SecurityScheme =
  | { readonly type: 'http'; readonly scheme: 'bearer' }
  | { readonly type: 'apiKey'; readonly in: 'header' | 'query'; readonly name: string }

/** Operation of the document with its parameters, body and responses. */
export interface DescribedOperation {
  readonly operationId: string
  readonly method: string
  /** Path as in the document, such as `/v3/findings/{findingId}`. */
  readonly path: string
  /** Names of the security schemes; empty for an operation without authentication. */
  readonly credentials: readonly string[]
  readonly parameters: readonly DescribedParameter[]
  readonly contents: Readonly<Record<string, { readonly example: unknown }>>
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

/** Parameter of an operation. */
interface DescribedParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly example?: unknown
}

interface DescribedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, HeaderObject>>
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>
}

interface HeaderObject {
  readonly $ref?: string
  readonly required?: boolean
  readonly schema: object
}

/** Response as a client has received it. */
export interface ReceivedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The part of the document that these tests read. */
export interface OpenApiJson {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationJson>>>>
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>
    readonly headers: Readonly<Record<string, HeaderObject>>
    readonly parameters: Readonly<Record<string, DescribedParameter>>
    readonly requestBodies: Readonly<Record<string, DescribedBody>>
    readonly responses: Readonly<Record<string, DescribedResponse>>
    readonly schemas: Readonly<Record<string, object>>
  }
}

interface OperationJson {
  readonly operationId: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly (DescribedParameter | Reference)[]
  readonly requestBody?: DescribedBody | Reference
  readonly responses: Readonly<Record<string, DescribedResponse | Reference>>
}

interface DescribedBody {
  readonly content: DescribedOperation['contents']
}

interface Reference {
  readonly $ref: string
}

/** Headers that the connection or the server adds to any response; `content` gives the media type. */
const TRANSPORT_HEADERS = new Set([
  'access-control-allow-credentials',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'uwebsockets',
  'vary',
  'x-content-type-options',
  'x-request-id',
])

/** Reads the operations of an OpenAPI document. */
export function readDescription(document: OpenApiJson): DescribedService {
  const ajv = new Ajv({ allErrors: true, strictTypes: false })
  addFormats.default(ajv)
  // OpenAPI's own: it names the one schema of several that a value must have, which `oneOf` finds too.
  ajv.addKeyword('discriminator')
  for (const [name, schema] of Object.entries(document.components.schemas)) ajv.addSchema(toJsonSchema(schema), name)
  const compiled = new Map<object, ValidateFunction>()

  function schemaFaults(schema: object, value: unknown, where: string): string[] {
    const validate = compiled.get(schema) ?? ajv.compile(toJsonSchema(schema))
    compiled.set(schema, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${where}${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }

  function headerFaults(described: DescribedResponse, headers: Headers): string[] {
    const known = new Map(
      Object.entries(described.headers ?? {}).map(([name, header]) => {
        const component = header.$ref?.split('/').at(-1)
        return [name.toLowerCase(), component ? (document.components.headers[component] as HeaderObject) : header]
      }),
    )
    const unknown = [...headers.keys()].filter(name => !TRANSPORT_HEADERS.has(name) && !known.has(name))
    return [
      ...unknown.map(name => `the header ${name} is not described`),
      ...[...known].flatMap(([name, { required, schema }]) => {
        const value = headers.get(name)
        if (value === null) return required ? [`the header ${name} is missing`] : []
        return schemaFaults(schema, value, `header ${name}`)
      }),
    ]
  }

  function faultsOf({ responses }: DescribedOperation, { status, headers, text }: ReceivedAnswer): string[] {
    const described = responses[status]
    if (described === undefined) return [`status ${status} is not described: ${text.slice(0, 500)}`]
    const faults = [...headerFaults(described, headers), ...cacheFaults(status, headers)]
    if (described.content === undefined) return text === '' ? faults : [...faults, 'a body is not described']
    const mediaType = headers.get('content-type') ?? ''
    const content = described.content[mediaType]
    if (content === undefined) return [...faults, `the content type "${mediaType}" is not described for ${status}`]
    if (mediaType !== 'application/json') return faults
    const body = JSON.parse(text)
    return [...faults, ...codeFaults(described, body), ...schemaFaults(content.schema, body, `${status} `)]
  }

  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      describe(document.components, { path, method: method.toUpperCase() }, operation),
    ),
  )
  return { operations, securitySchemes: document.components.securitySchemes, faultsOf }
}

function describe(
  components: OpenApiJson['components'],
  at: Pick<DescribedOperation, 'path' | 'method'>,
  { operationId, security, parameters = [], requestBody, responses }: OperationJson,
): DescribedOperation {
  const credentials = security.flatMap(scheme => Object.keys(scheme))
  const resolved = Object.entries(responses).map(([status, response]) => {
    return [status, resolve(components.responses, response)] as const
  })
  const contents = requestBody && resolve(components.requestBodies, requestBody).content
  return {
    ...{ ...at, operationId, credentials, contents: contents ?? {} },
    parameters: parameters.map(parameter => resolve(components.parameters, parameter)),
    responses: Object.fromEntries(resolved),
  }
}

function resolve<T extends object>(components: Readonly<Record<string, T>>, part: T | Reference): T {
  if (!('$ref' in part)) return part
  const component = components[part.$ref.split('/').at(-1) ?? '']
  if (component === undefined) throw new Error(`there is no component ${part.$ref}`)
  return component
}

/** No cache keeps a refusal. */
function cacheFaults(status: number, headers: Headers): string[] {
  const rule = headers.get('cache-control')
  return status >= 400 && rule !== 'no-store' ? [`cache-control is ${rule}`] : []
}

/** The description of a response names every code that its problems have. */
function codeFaults({ description }: DescribedResponse, body: unknown): string[] {
  const { code } = (body ?? {}) as { code?: unknown }
  return typeof code === 'string' && !description.includes(`\`${code}\``) ? [`the code ${code} is not described`] : []
}

/**
 * Resolves references to components and the null type of OpenAPI 3.0; the rest is JSON Schema. The document lets responses have
 * further members, so that they may be added later. A member that is not described is a fault here.
 */
function toJsonSchema(schema: object): object {
  const { nullable, example: _, ...rest } = schema as Record<string, unknown>
  const converted: Record<string, unknown> =
    'properties' in rest && !('allOf' in rest) ? { additionalProperties: false } : {}
  for (const [key, value] of Object.entries(rest)) converted[key] = convert(key, value)
  return nullable === true ? { anyOf: [converted, { type: 'null' }] } : converted
}

function convert(key: string, value: unknown): unknown {
  if (key === '$ref' && typeof value === 'string') return value.split('/').at(-1)
  if (key === 'enum' || key === 'default' || key === 'required') return value
  if (key === 'properties') {
    return Object.fromEntries(Object.entries(value as object).map(([name, property]) => [name, toJsonSchema(property)]))
  }
  if (Array.isArray(value)) return value.map(item => (isObject(item) ? toJsonSchema(item) : item))
  return isObject(value) ? toJsonSchema(value) : value
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
