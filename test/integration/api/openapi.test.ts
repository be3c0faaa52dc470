import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allOperations } from '../../../schemas/http/all-operations.ts'
import { EXAMPLE } from '../../../schemas/http/example-values.ts'
import { buildOpenApiDocument, templateOf } from '../../../schemas/openapi/build-document.ts'
import { KIB, MIB } from '../../../schemas/units.ts'
import {
  type DescribedOperation,
  type DescribedService,
  type OpenApiJson,
  type ReceivedAnswer,
  readDescription,
} from '../../support/clients/described-service.ts'
import {
  type ExampleRequest,
  exampleRequest,
  lacksOf,
  mediaTypesOf,
  presentCredential,
  send,
} from '../../support/clients/example-request.ts'
import { type ExampleWorkspace, startExampleWorkspace } from '../../support/services/example-workspace.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
let workspace: ExampleWorkspace
/** Document that the running service returned; tests are named after the document that it should return. */
let service: DescribedService

let receiptId: string

const named = readDescription(
  JSON.parse(
    JSON.stringify(buildOpenApiDocument(allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] }))),
  ),
)
const operations = named.operations
/** Operations in an order in which deletions come last, because deleting the surface deletes the keys that the others use. */
const inOrder = [
  ...operations.filter(({ method }) => method !== 'DELETE'),
  ...operations.filter(({ method }) => method === 'DELETE').reverse(),
]

beforeAll(async () => {
  workspace = await startExampleWorkspace(services, `${services.redisUrl}/5`)
  service = readDescription((await (await fetch(`${workspace.baseUrl}/openapi.json`)).json()) as OpenApiJson)
  // A release, for requests that are refused of a known one, and a receipt, whose id is never issued again.
  await send(workspace.baseUrl, requestOf(operationOf('registerRelease')))
  const { headers } = await send(workspace.baseUrl, requestOf(operationOf('recordHeartbeat')))
  receiptId = headers.get('x-receipt-id') as string
})
afterAll(() => workspace?.stop())

it('describes exactly the mounted routes', () => {
  const mounted = workspace.routes.map(({ method, path }) => `${method} ${templateOf(path)}`)
  const described = service.operations.map(({ method, path }) => `${method} ${path}`)
  expect(described.sort()).toEqual(mounted.sort())
})

describe('refuses as described', () => {
  it.each(withCredentials())('$operationId without a credential and with invalid ones', async operation => {
    expect((await ask(operation, exampleRequest(operation))).status).toBe(401)
    for (const credential of operation.credentials) {
      const request = presentCredential(service, exampleRequest(operation), credential, 'nonsense')
      expect((await ask(operation, request)).status).toBe(401)
    }
  })

  it.each(withCredentials('sessionToken'))(
    '$operationId for callers without the organization or the permission',
    async operation => {
      for (const token of Object.values(workspace.powerless)) {
        const request = presentCredential(service, exampleRequest(operation), 'sessionToken', token)
        expect((await ask(operation, request)).status).toBe(403)
      }
    },
  )

  it.each(operations)('$operationId with another method', async operation => {
    const used = operations.filter(({ path }) => path === operation.path).map(({ method }) => method)
    const method = ['PATCH', 'PUT'].find(other => !used.includes(other)) ?? ''
    const answer = await send(workspace.baseUrl, { ...requestOf(operation), method, body: undefined })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toContain(operation.method)
  })

  // A label that no series has, or a tag that no span has, is a list without values.
  it.each(operations.filter(({ path }) => path.includes('{') && !/\/(label|tag|services)\//.test(path)))(
    '$operationId of a resource that does not exist',
    async operation => {
      const { path, method } = operation
      for (const { name, example } of operation.parameters.filter(parameter => parameter.in === 'path')) {
        const request = requestOf(operation)
        const known = String(name === 'receiptId' ? receiptId : encodeURIComponent(String(example)))
        const answer = await ask(operation, {
          ...request,
          path: request.path.replace(known, absentLike(known, method)),
        })
        if (method === 'GET' || method === 'DELETE' || path === '/drain/v1/{signal}')
          expect(answer.status, name).toBe(404)
        const malformed = await ask(operation, { ...request, path: request.path.replace(known, '%FF') })
        expect(malformed.status, name).toBeOneOf([400, 404])
      }
    },
  )

  // Every text is a form, and lists of labels need no parameter.
  it.each(withBody().filter(({ operation }) => operation.operationId !== 'listPrometheusLabelsByForm'))(
    '$operation.operationId with a body that is none, as $mediaType',
    async ({ operation, mediaType }) => {
      const request = requestOf(operation, { mediaType })
      const body = mediaType === 'application/x-protobuf' ? new Uint8Array([0xff]) : isJson(mediaType) ? '[]' : ''
      expect((await ask(operation, { ...request, body })).status).toBe(400)
    },
  )

  it.each(withBody())(
    '$operation.operationId with a content type other than $mediaType',
    async ({ operation, mediaType }) => {
      const encoded = requestOf(operation, { mediaType })
      encoded.headers.set('content-encoding', 'br')
      expect((await ask(operation, encoded)).status).toBe(415)
      const otherType = requestOf(operation, { mediaType })
      otherType.headers.set('content-type', 'application/xml')
      // A replay chunk is accepted under any content type.
      expect((await ask(operation, otherType)).status).toBe(operation.operationId === 'uploadReplayChunk' ? 200 : 415)
    },
  )

  it.each(withBody())(
    '$operation.operationId with a body over 512 KiB, as $mediaType',
    async ({ operation, mediaType }) => {
      const body = ' '.repeat(512 * KIB + 1)
      const { status } = await ask(operation, { ...requestOf(operation, { mediaType }), body })
      const takesMore = ['exportTelemetry', 'exportOtlp', 'uploadReplayChunk', 'uploadSourceMap', 'completeSourceMaps']
      if (takesMore.includes(operation.operationId)) expect(status).toBeOneOf([200, 400])
      else expect(status).toBe(413)
    },
  )

  it.each([
    ['createWorkspaceKey', 409, { name: 'Another' }],
    ['signSourceMaps', 413, { files: [{ path: 'a.map', size: 64 * MIB + 1, hash: 'x' }] }],
    ['completeSourceMaps', 400, { files: [{ path: 'never-sent.map', hash: 'x', debugId: '', chunkUrl: '' }] }],
    ['createWorkspaceKey', 400, { scopes: ['org:everything'] }],
  ])('%s with %i when its fields are invalid', async (operationId, status, fields) => {
    const operation = operationOf(operationId)
    const request = requestOf(operation)
    await send(workspace.baseUrl, request)
    const body = JSON.stringify({ ...JSON.parse(String(request.body)), ...fields })
    expect((await ask(operation, { ...request, body })).status).toBe(status)
  })

  it('a part of a map that was sent before with other bytes', async () => {
    const request = requestOf(operationOf('uploadSourceMapPart'))
    await send(workspace.baseUrl, request)
    expect((await ask(operationOf('uploadSourceMapPart'), { ...request, body: 'other' })).status).toBe(409)
  })

  // In the interfaces of other tools a limit over that of the service is accepted.
  const limited = operations.filter(
    ({ path, parameters }) =>
      !/^\/(prometheus|tempo|jaeger)\//.test(path) && parameters.some(({ name }) => name === 'limit'),
  )
  it.each(limited)('$operationId with an invalid limit or cursor', async operation => {
    for (const [name, value] of [
      ['limit', '0'],
      ['limit', '100000'],
      ['limit', 'x'],
      ['cursor', 'x'.repeat(600)],
    ] as const) {
      if (!operation.parameters.some(parameter => parameter.name === name)) continue
      const request = requestOf(operation)
      request.query.set(name, value)
      expect((await ask(operation, request)).status, `${name}=${value}`).toBe(400)
    }
  })

  async function ask(operation: DescribedOperation, request: ExampleRequest): Promise<ReceivedAnswer> {
    const answer = await send(workspace.baseUrl, request)
    expect(service.faultsOf(operation, answer)).toEqual([])
    return answer
  }
})

describe('accepts the example of an operation with each of its credentials and content types, and responds as described', () => {
  it.each(ways(inOrder))('$name', async ({ operation, ...way }) => {
    if (operation.method === 'DELETE') await workspace.restore()
    const answer = await answerTo(operation, way)
    expect(service.faultsOf(operation, answer)).toEqual([])
    expect(lacks(operation, answer)).toEqual([])
  })

  /** Repeats a read until earlier requests are stored; returns the last response when none was complete. */
  async function answerTo(operation: DescribedOperation, way: Way): Promise<ReceivedAnswer> {
    const deadlineAt = Date.now() + 15_000
    for (;;) {
      const answer = await send(workspace.baseUrl, requestOf(operation, way))
      const isLast = operation.method !== 'GET' || Date.now() > deadlineAt
      if (isLast || lacks(operation, answer).length === 0) return answer
      await delay(20)
    }
  }
})

it('is not sent again to a client that has it', async () => {
  const url = `${workspace.baseUrl}/openapi.json`
  const first = await fetch(url)
  const etag = first.headers.get('etag') as string
  const bytes = await first.text()
  for (const ifNoneMatch of [etag, `"other", W/${etag}`, '*']) {
    const again = await fetch(url, { headers: { 'if-none-match': ifNoneMatch } })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    expect(again.headers.get('content-length')).toBe(String(Buffer.byteLength(bytes)))
  }
  expect((await fetch(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
})

interface Way {
  readonly credential?: string | undefined
  readonly mediaType?: string | undefined
}

function ways(all: readonly DescribedOperation[]): (Way & { operation: DescribedOperation; name: string })[] {
  return all.flatMap(operation =>
    (operation.credentials.length === 0 ? [undefined] : operation.credentials).flatMap(credential =>
      mediaTypesOf(operation).map(mediaType => {
        const name = [operation.operationId, credential ?? 'nobody', mediaType ?? 'no body'].join(', ')
        return { operation, credential, mediaType, name }
      }),
    ),
  )
}

/** Sends the example with values that the running service accepts, with the first credential unless another is named. */
function requestOf(
  operation: DescribedOperation,
  { credential = operation.credentials[0], mediaType }: Way = {},
): ExampleRequest {
  const request = exampleRequest(operation, mediaType)
  request.path = request.path.replace(EXAMPLE.receiptId, receiptId)
  if (credential === undefined) return request
  return presentCredential(service, request, credential, workspace.credentials[credential] as string)
}

/** Returns what the documented example has and the response lacks: a list may be empty only if that of the example is. */
function lacks({ responses }: DescribedOperation, { status, headers, text }: ReceivedAnswer): string[] {
  const documented = Object.keys(responses).find(key => key.startsWith('2'))
  if (String(status) !== documented) return [`the status ${documented}: it was ${status} ${text.slice(0, 500)}`]
  const example = responses[status]?.content?.[headers.get('content-type') ?? '']?.example
  if (typeof example === 'string') return (text === '') === (example === '') ? [] : ['a body']
  return lacksOf(example, JSON.parse(text))
}

function operationOf(id: string): DescribedOperation {
  return operations.find(({ operationId }) => operationId === id) as DescribedOperation
}

function withCredentials(scheme?: string): readonly DescribedOperation[] {
  return operations.filter(({ credentials }) => (scheme ? credentials.includes(scheme) : credentials.length > 0))
}

function withBody(): { operation: DescribedOperation; mediaType: string }[] {
  return operations.flatMap(operation => Object.keys(operation.contents).map(mediaType => ({ operation, mediaType })))
}

const isJson = (mediaType: string) => mediaType === 'application/json' || mediaType === 'text/plain'

/** Returns an unused id of the same form; data written under it is not among the data that is read. */
function absentLike(id: string, method: string): string {
  return id.replace(/[^_-]*$/, last => (method === 'GET' ? 'a' : 'b').repeat(last.length))
}
