import { REQUEST_ID, REQUEST_ID_HEADER } from '../../../schemas/http/request-id.ts'
import type { RequestHead } from '../route.ts'

/** Matches the version 00 of a traceparent (W3C Trace Context section 3.2), with the trace id. */
const TRACEPARENT = /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Returns the id that the client gives its request: `x-request-id`, else the trace id of `traceparent`. */
export function readRequestId(head: Pick<RequestHead, 'header'>): string | undefined {
  const own = head.header(REQUEST_ID_HEADER)
  if (own !== undefined && REQUEST_ID.test(own)) return own
  return TRACEPARENT.exec(head.header('traceparent') ?? '')?.[1]
}
