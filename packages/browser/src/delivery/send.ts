import type { SpooledRequest } from './request.ts'

/** How an attempt to send a request ended. */
type SendOutcome =
  | { readonly kind: 'acknowledged'; readonly receipt: string | undefined }
  /** The same request may succeed later. */
  | { readonly kind: 'later'; readonly afterMs: number }
  /** The service refuses the request for good. */
  | { readonly kind: 'refused'; readonly status: number }

/** Where requests go. */
export interface Destination {
  /** Without a slash at the end. */
  readonly url: string
  readonly key: string
}

/** A service that does not answer is not waited for. */
const TIMEOUT_MS = 30_000
/** Longest time that the service may ask to wait. */
const MAX_WAIT_MS = 10 * 60_000

/** `fetch` as it was before anything patched it. */
export const plainFetch = globalThis.fetch?.bind(globalThis)

/** Sends a request. Never rejects. `keepalive` lets it outlive the page. */
export async function send(
  { url, key }: Destination,
  request: SpooledRequest,
  keepalive = false,
): Promise<SendOutcome> {
  try {
    const response = await plainFetch(url + request.target, {
      method: 'POST',
      headers: {
        ...request.headers,
        'content-type': request.contentType,
        'x-service-public-key': key,
        ...(request.isGzip && { 'content-encoding': 'gzip' }),
      },
      body: request.body,
      keepalive,
      credentials: 'omit',
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (response.ok) return { kind: 'acknowledged', receipt: response.headers.get('x-receipt-id') ?? undefined }
    const { status } = response
    if (status === 408 || status === 429 || status >= 500) {
      return { kind: 'later', afterMs: retryAfterMs(response.headers.get('retry-after')) }
    }
    return { kind: 'refused', status }
  } catch {
    // No connection, no answer, or the page ends. The request may have arrived or not, so it is sent again.
    return { kind: 'later', afterMs: 0 }
  }
}

/** Reads `Retry-After` in seconds. The service sends no dates. */
function retryAfterMs(header: string | null): number {
  const seconds = Number(header)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0) * 1_000, MAX_WAIT_MS) : 0
}

/**
 * Sends a request as a beacon, for browsers whose `fetch` cannot outlive the page. A beacon has no headers: the key is in the
 * query. Returns false if the browser does not take it.
 */
export function sendBeacon({ url, key }: Destination, request: SpooledRequest): boolean {
  // Without its header, only a chunk is recognized as gzip.
  if (request.isGzip && !request.target.startsWith('/v3/replay/')) return false
  const join = request.target.includes('?') ? '&' : '?'
  const body = new Blob([request.body], { type: request.contentType })
  return navigator.sendBeacon(`${url}${request.target}${join}public_key=${encodeURIComponent(key)}`, body)
}
