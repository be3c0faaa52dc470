import { CLIENT, type OpenSpan, type Tracer } from '../signals/tracer.ts'
import { requestAttributes, seeUrl, type UrlRules } from './urls.ts'

/** Makes a span of each request by `fetch`, and continues its trace in the service that it calls. Returns what undoes it. */
export function watchFetch(tracer: Tracer, rules: UrlRules): () => void {
  const original = globalThis.fetch
  function watchedFetch(this: unknown, ...given: Parameters<typeof fetch>): Promise<Response> {
    const begun = begin(tracer, rules, given)
    const promise = original.apply(this ?? globalThis, begun?.given ?? given)
    if (begun !== undefined) {
      promise.then(
        ({ status }) => {
          endWithStatus(begun.span, status)
          rules.feed.add(begun.method, begun.url, status)
        },
        (error: unknown) => {
          begun.span.end({ 'error.type': nameOf(error) }, String(error))
          rules.feed.add(begun.method, begun.url, 0)
        },
      )
    }
    return promise
  }
  globalThis.fetch = watchedFetch
  return () => {
    if (globalThis.fetch === watchedFetch) globalThis.fetch = original
  }
}

/** Ends the span of a request that has a response. */
export function endWithStatus(span: OpenSpan, status: number): void {
  const attributes = { 'http.response.status_code': status, 'error.type': status >= 400 ? String(status) : undefined }
  span.end(attributes, status >= 400 ? `HTTP ${status}` : undefined)
}

/** Returns `traceparent` of a span. */
export function traceparentOf({ traceId, spanId }: OpenSpan): string {
  return `00-${traceId}-${spanId}-01`
}

interface Begun {
  readonly span: OpenSpan
  readonly method: string
  readonly url: URL
  readonly given: Parameters<typeof fetch>
}

/** Begins the span of a request. Returns undefined if it has none. */
function begin(tracer: Tracer, rules: UrlRules, given: Parameters<typeof fetch>): Begun | undefined {
  const [input, init] = given
  const isRequest = input instanceof Request
  const seen = seeUrl(rules, isRequest ? input.url : String(input))
  if (seen === undefined) return undefined
  const method = String(init?.method ?? (isRequest ? input.method : 'GET')).toUpperCase()
  const mode = init?.mode ?? (isRequest ? input.mode : undefined)
  const headers = seen.isPropagated && mode !== 'no-cors' ? headersOf(input, init) : undefined
  const span = tracer.start({ name: method, kind: CLIENT, attributes: requestAttributes(method, seen.url) })
  const begun = { span, method, url: seen.url }
  if (headers === undefined) return { ...begun, given }
  if (!headers.has('traceparent')) headers.set('traceparent', traceparentOf(span))
  return { ...begun, given: [input, { ...init, headers }] }
}

/** Returns the headers of a request, or undefined if `fetch` itself will refuse them. */
function headersOf(input: RequestInfo | URL, init: RequestInit | undefined): Headers | undefined {
  try {
    return new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  } catch {
    return undefined
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
