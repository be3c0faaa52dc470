import { RECEIPT_HEADER } from '../../../schemas/http/receipts.ts'
import { REQUEST_ID_HEADER } from '../../../schemas/http/request-id.ts'
import type { Header, RequestHead } from '../route.ts'
import type { HttpResponse } from './uws.ts'

const ALLOWED_HEADERS = [
  'x-service-public-key',
  'x-replay-metadata',
  'content-type',
  'content-encoding',
  'authorization',
] as const

const EXPOSED_HEADERS = `Retry-After, WWW-Authenticate, ${RECEIPT_HEADER}, ${REQUEST_ID_HEADER}`

/**
 * Returns the Origin to echo. Only visible ASCII is echoed, because a bare line feed would forge a header for lenient
 * clients.
 */
export function readOrigin(head: RequestHead): string | undefined {
  const origin = head.header('origin')
  return origin !== undefined && origin.length <= 512 && /^[\x21-\x7e]+$/.test(origin) ? origin : undefined
}

/**
 * Writes what a browser needs to show the response to the page. Credentials are allowed because beacons send them; none
 * are read.
 */
export function writeCorsHeaders(res: HttpResponse, origin: string): void {
  res.writeHeader('access-control-allow-origin', origin)
  res.writeHeader('access-control-allow-credentials', 'true')
  res.writeHeader('access-control-expose-headers', EXPOSED_HEADERS)
  res.writeHeader('vary', 'Origin')
}

/** Returns the headers of a preflight response beyond those of `writeCorsHeaders`. */
export function preflightHeaders(head: RequestHead, methods: readonly string[]): Header[] {
  return [
    ['access-control-allow-methods', methods.join(', ')],
    ['access-control-allow-headers', [...new Set([...ALLOWED_HEADERS, ...requestedHeaders(head)])].join(', ')],
    ['access-control-max-age', '86400'],
  ]
}

/** Returns the requested headers: tracing libraries add some, and `*` has no effect where credentials are allowed. */
function requestedHeaders(head: RequestHead): string[] {
  const names = (head.header('access-control-request-headers') ?? '').slice(0, 2048).toLowerCase().split(',', 50)
  return names.map(name => name.trim()).filter(name => /^[a-z0-9-]{1,64}$/.test(name))
}
