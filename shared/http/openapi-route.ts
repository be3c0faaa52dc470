import { createHash } from 'node:crypto'
import { allOperations, readOpenApi } from '../../schemas/http/all-operations.ts'
import { buildOpenApiDocument } from '../../schemas/openapi/build-document.ts'
import { namesTag } from './etag.ts'
import { operationRoute } from './operation-route.ts'
import { NO_SNIFF, type Reply, type Route } from './route.ts'

/** Settings that the document depends on. */
interface OpenApiSettings {
  /** Display names of the identity providers whose identities are accepted. */
  readonly identityProviders: readonly string[]
  /** The address at which clients reach every operation. Unset: the address that served the document. */
  readonly publicUrl?: string | undefined
}

/**
 * Returns the route of `GET /openapi.json` (docs/api/requests.md#openapi). Every process serves the document of all
 * operations, and with the same settings the same bytes under the same ETag. The document is made here, before the
 * process listens, because making it blocks the event loop for up to 0.1 s.
 */
export function openApiRoute(settings: OpenApiSettings): Route {
  const { etag, reply } = makeReply(settings)
  return operationRoute(readOpenApi, {
    accept: head => (namesTag(head.header('if-none-match'), etag) ? { ...reply, status: 304 } : reply),
  })
}

function makeReply({ identityProviders, publicUrl }: OpenApiSettings): { etag: string; reply: Reply } {
  const document = buildOpenApiDocument(allOperations({ identityProviders }), publicUrl)
  const body = Buffer.from(JSON.stringify(document))
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = [
    ['content-type', 'application/json'],
    NO_SNIFF,
    ['cache-control', 'no-cache'],
    ['etag', etag],
  ] as const
  return { etag, reply: { status: 200, headers, body } }
}
