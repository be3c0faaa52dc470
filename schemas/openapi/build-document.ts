import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import type { Credential } from '../http/credentials.ts'
import { type Content, type DocumentedProblem, type Operation, problemsOf, TAGS } from '../http/operation.ts'
import { PROBLEMS, type ProblemService, problemSchema } from '../http/problems.ts'
import { HEADERS, headersOf } from './headers.ts'
import { type SchemaObject, tidySchema } from './tidy-schema.ts'

/** Introduction of the document, in Markdown. */
const INTRODUCTION = [
  'Accepts telemetry of browsers and servers, groups exceptions into findings, and returns every retained span of their traces.',
  'All data belongs to a workspace, and a credential gives access to its own workspace only. Resources of another workspace are reported as not existing.',
  'A request that is acknowledged with 200 is on disk. It will be stored, or kept as a dead letter with a reason. A request that gets 429, 503 or no response may be sent again unchanged, after the seconds in `Retry-After` if that header is present.',
  'A refusal is a `Problem`, whose `message` names the field and the rule. Checks are made in this order: path and method, credential, permission, size, backpressure, shape. An unknown path returns 404 with the code `NOT_FOUND`.',
  'A head (request line and headers) over 16 KiB is refused with 431, another version than HTTP/1.1 with 505 and a malformed head with 400, all as text and before any operation.',
  'Every path with GET supports HEAD. Every path supports OPTIONS, which returns 204 with `Allow`, and the headers of a preflight on paths whose responses have CORS headers.',
  'Lists are paged. `limit` is the maximum number of entries. Send `nextCursor` as `cursor` to get the next page; it is null on the last page.',
  'Times are in RFC 3339, in UTC. Unknown fields of a body are ignored, or refused where the schema has `additionalProperties: false`.',
].join('\n\n')

const ANY_SERVER = { url: '/', description: 'The address that served this document.' }

/** An OpenAPI document, as far as its readers need its form. */
interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
}
interface OpenApiOperation {
  readonly parameters?: SchemaObject[]
}

/** Returns the OpenAPI 3.0.4 document of these operations. `publicUrl` is the one address at which clients reach them all. */
export function buildOpenApiDocument(operations: readonly Operation[], publicUrl?: string): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {}
  for (const operation of operations) {
    const path = templateOf(operation.path)
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) }
  }
  const document = createDocument(
    {
      // The newest 3.0 that the library names; 3.0.4 differs from it in wording only.
      openapi: '3.0.3',
      info: {
        title: 'Penstock',
        version: '3.0.0',
        description: INTRODUCTION,
        license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      },
      servers: [publicUrl === undefined ? ANY_SERVER : { url: publicUrl, description: 'All operations.' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      paths,
      components: { securitySchemes: SECURITY_SCHEMES, headers: HEADERS, schemas: { Problem: problemSchema } },
    },
    { override: ({ jsonSchema }) => tidySchema(jsonSchema as SchemaObject) },
  ) as unknown as OpenApiDocument
  for (const methods of Object.values(document.paths)) {
    for (const { parameters = [] } of Object.values(methods)) parameters.forEach(liftExample)
  }
  return { ...document, openapi: '3.0.4' }
}

/** Returns a path as OpenAPI writes it, such as `/v3/findings/{findingId}`. */
export function templateOf(path: string): string {
  return path.replaceAll(/:([A-Za-z]+)/g, '{$1}')
}

const ifNoneMatch = z.object({
  'if-none-match': z.string().optional().meta({ description: 'The `ETag` of the response that the client has.' }),
})

function describe(operation: Operation): ZodOpenApiOperationObject {
  const { operationId, summary, tag, credentials, parameters, body, success, isConditional } = operation
  const description = descriptionOf(operation)
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    security: credentials.map(credential => ({ [credential]: [] })),
    ...((parameters || isConditional) && {
      requestParams: { ...parameters, ...(isConditional && { header: ifNoneMatch }) },
    }),
    ...(body && {
      requestBody: {
        required: true,
        ...(body.description && { description: body.description }),
        content: contentsOf(body.contents),
      },
    }),
    responses: {
      [success.status]: {
        description: success.description,
        ...headersOf(operation, success.status),
        content: contentsOf(success.contents),
      },
      ...(isConditional && { 304: { description: 'The response has not changed.', ...headersOf(operation, 304) } }),
      ...problemResponses(operation),
    },
  }
}

function descriptionOf({ description, permission }: Operation): string {
  const needs = permission && `Requires the permission \`${permission}\`.`
  return [description, needs].filter(Boolean).join(' ')
}

const BYTES = { type: 'string', format: 'binary' } as const

function contentsOf(contents: Readonly<Record<string, Content>>) {
  return Object.fromEntries(
    Object.entries(contents).map(([mediaType, { schema, example }]) => [
      mediaType,
      { schema: schema ?? BYTES, example },
    ]),
  )
}

/** Moves the example of a parameter out of its schema, and drops the description that both have. */
function liftExample(parameter: SchemaObject): void {
  const { description: _, example, ...schema } = parameter.schema as SchemaObject
  parameter.schema = schema
  if (example !== undefined) parameter.example = example
}

/** Security schemes of the credentials (docs/api/credentials.md#credentials). */
const SECURITY_SCHEMES = {
  publicKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-service-public-key',
    description:
      'Public key of a surface (`pk_…`). Safe to include in browser code. The header takes precedence over the query.',
  },
  publicKeyQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'public_key',
    description: 'Public key of a surface, for clients that cannot send headers (beacons).',
  },
  secretKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'Secret key of a surface (`sk_…`) with the scope `release:write`.',
  },
  workspaceKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Workspace API key (`wk_…`). It has the permissions that are in its scopes and that its creator currently has.',
  },
  sessionToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a signed-in user. Its claim `org` names the workspace.',
  },
  workloadIdentity: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a workload, from a separate issuer. It has the read permissions of its `org`.',
  },
} as const satisfies Record<Credential, unknown>

/**
 * Returns the responses of an operation's problems, one per status. Each schema lists the codes and services of its
 * status.
 */
function problemResponses(operation: Operation): Record<`${4 | 5}${string}`, ZodOpenApiResponseObject> {
  const problems = problemsOf(operation)
  const statuses = [...new Set(problems.map(statusOf))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const those = problems.filter(problem => statusOf(problem) === status)
      return [status, responseOf(operation, status, those)]
    }),
  )
}

function responseOf(
  operation: Operation,
  status: number,
  problems: readonly DocumentedProblem[],
): ZodOpenApiResponseObject {
  const otherType = operation.problemForm?.otherType
  const examples = problems.map(problem => [nameOf(problem, problems), { value: exampleOf(problem, operation) }])
  return {
    description: problems.map(({ code, when }) => `\`${code}\`: ${when}.`).join(' '),
    ...headersOf(operation, status),
    content: {
      'application/json': {
        schema: schemaOf(operation, problems),
        examples: Object.fromEntries(examples),
      },
      ...(otherType !== undefined && { [otherType]: { schema: BYTES } }),
    },
  }
}

/** Returns the schema of the problems of one status: the common body, narrowed to their codes and services. */
function schemaOf({ problemForm }: Operation, problems: readonly DocumentedProblem[]) {
  if (problemForm) return problemForm.schema
  const codes = [...new Set(problems.map(({ code }) => code))]
  const services = [...new Set(problems.map(serviceOf))]
  const narrowed = { code: { type: 'string', enum: codes }, service: { type: 'string', enum: services } } as const
  return { allOf: [{ $ref: '#/components/schemas/Problem' }, { type: 'object' as const, properties: narrowed }] }
}

function exampleOf(problem: DocumentedProblem, { problemForm }: Operation): unknown {
  const example = { code: problem.code, message: problem.when, service: serviceOf(problem) }
  return problemForm ? problemForm.of(example) : example
}

function statusOf({ code, status }: DocumentedProblem): number {
  return status ?? PROBLEMS[code].status
}

function serviceOf({ code, service }: DocumentedProblem): ProblemService {
  return service ?? PROBLEMS[code].service
}

/** Returns the name of a problem's example. Several examples of one code are numbered, because names are keys. */
function nameOf(problem: DocumentedProblem, all: readonly DocumentedProblem[]): string {
  const same = all.filter(({ code }) => code === problem.code)
  return same.length === 1 ? problem.code : `${problem.code}${same.indexOf(problem) + 1}`
}
