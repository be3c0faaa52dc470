import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi'
import type { Credential } from '../http/credentials.ts'
import { formatBytes } from '../http/limits.ts'
import { type Content, type Operation, TAGS } from '../http/operation.ts'
import { problemSchema } from '../http/problems.ts'
import { HEADERS, headersOf } from './headers.ts'
import { BYTES, problemResponses } from './problem-responses.ts'
import { shareParts } from './share-parts.ts'
import { type SchemaObject, tidySchema } from './tidy-schema.ts'

/** Introduction of the document, in Markdown. */
const INTRODUCTION = [
  'Accepts telemetry of browsers and servers, groups exceptions into findings, and returns every retained span of their traces.',
  'All data belongs to a workspace, and a credential gives access to its own workspace only. Resources of another workspace are reported as not existing.',
  'A request that is acknowledged with 200 is on disk. It will be stored, or kept as a dead letter with a reason. A request that gets 429, 503 or no response may be sent again unchanged, after the seconds in `Retry-After` if that header is present.',
  'A refusal is a `Problem`, whose `message` names the field and the rule. Checks are made in this order: path and method, credential, permission, size, backpressure, shape. An unknown path returns 404 with the code `NOT_FOUND`, another method than those of a path 405 with `METHOD_NOT_ALLOWED` and `Allow`.',
  'Every response has `x-request-id`, the id that the log of the service has too, and is not kept by caches unless it has an `ETag`. Pages of any origin may read the responses to telemetry.',
  'A head (request line and headers) over 16 KiB is refused with 431, another version than HTTP/1.1 with 505 and a malformed head with 400, all as text, without `x-request-id` and before any operation.',
  'Every path with GET supports HEAD. Every path supports OPTIONS, which returns 204 with `Allow`, and the headers of a preflight on paths whose responses have CORS headers.',
  'Lists are paged. `limit` is the maximum number of entries. Send `nextCursor` as `cursor` to get the next page; it is null on the last page.',
  'Times are in RFC 3339, in UTC. Unknown fields of a body are ignored, or refused where the schema has `additionalProperties: false`. Unknown query parameters are refused by operations under `/v3/` that take a session token, and ignored by others.',
  'Responses may get further members, and lists of values further values, within version 3. Clients ignore those that they do not know.',
].join('\n\n')

const ANY_SERVER = { url: '/', description: 'The address that served this document.' }

/** An OpenAPI document, as far as its readers need its form. */
interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
}
interface OpenApiOperation {
  parameters?: SchemaObject[]
  responses?: Record<string, SchemaObject>
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
    { override: ({ jsonSchema, io }) => tidySchema(jsonSchema as SchemaObject, io) },
  ) as unknown as OpenApiDocument
  for (const methods of Object.values(document.paths)) {
    for (const { parameters = [] } of Object.values(methods)) parameters.forEach(liftExample)
  }
  shareParts(document)
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
        description: [body.description, `At most ${formatBytes(body.limitBytes)}.`].filter(Boolean).join(' '),
        content: contentsOf(body.contents),
      },
    }),
    responses: {
      [success.status]: {
        description: success.description,
        ...headersOf(operation, success.status),
        content: contentsOf(success.contents),
      },
      ...(operation.acceptedWithout && { 202: { description: operation.acceptedWithout } }),
      ...(isConditional && { 304: { description: 'The response has not changed.', ...headersOf(operation, 304) } }),
      ...problemResponses(operation),
    },
  }
}

function descriptionOf({ description, permission }: Operation): string {
  const needs = permission && `Permission: \`${permission}\`.`
  return [description, needs].filter(Boolean).join(' ')
}

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
