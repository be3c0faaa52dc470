import { type PageRequest, pageRequestSchema } from '../../schemas/http/sessions/page-request.ts'
import { parseQuery } from '../../shared/http/parse-query.ts'
import type { RequestHead } from '../../shared/http/route.ts'

/** The number of a request, or the fault of one that is not valid. Undefined if its page did not number it. */
export type NumberedRequest =
  | { readonly ok: true; readonly value: PageRequest }
  | { readonly ok: false; readonly fault: string }
  | undefined

/** Reads the number that a page has given to its request (docs/api/requests.md#page-requests). */
export function numberOfRequest(head: Pick<RequestHead, 'query' | 'rawQuery'>): NumberedRequest {
  if (head.rawQuery() === '') return undefined
  const [session, page, sequence] = [head.query('session'), head.query('page'), head.query('sequence')]
  if (session === undefined && page === undefined && sequence === undefined) return undefined
  return parseQuery(pageRequestSchema, { session, page, sequence })
}
