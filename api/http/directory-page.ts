import { z } from 'zod'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { ListPlace } from '../../shared/directory/sorted-index.ts'
import type { RequestHead } from '../../shared/http/route.ts'
import { CURSOR_FAULT, invalid, parseQuery } from './parse-query.ts'
import type { Outcome } from './reply.ts'

/** A page of things that are ordered by when they were made, the newest first. */
export interface DirectoryPage {
  readonly limit: number
  /** The last one of the page before. */
  readonly after: ListPlace | undefined
}

/** What the query of a request says of a page, as it stands. */
export type AskedPage = Readonly<Record<'limit' | 'cursor', string | undefined>>

/** Read with the head, and judged once the credential has been. */
export function askedPage(head: RequestHead): AskedPage {
  return { limit: head.query('limit'), cursor: head.query('cursor') }
}

export function parsePage(asked: AskedPage): Outcome<DirectoryPage> {
  const query = parseQuery(pageQuerySchema, asked, 'operation')
  if (!query.ok) return query
  const after = decodePlace(query.value.cursor)
  return after.ok ? { ok: true, value: { limit: query.value.limit, after: after.value } } : after
}

/** How to ask the directory for a page: with one more, which tells whether there is a next one. */
export function withOneMore({ limit, after }: DirectoryPage): DirectoryPage {
  return { limit: limit + 1, after }
}

/** The page of what was found with one more, and the cursor of the next one; null on the last. */
export function pageOf<T extends { createdAt: string; id: string }>(
  found: readonly T[],
  { limit }: DirectoryPage,
): { shown: T[]; nextCursor: string | null } {
  const last = found.length > limit ? found[limit - 1] : undefined
  return { shown: found.slice(0, limit), nextCursor: last ? encodePlace(last) : null }
}

/** The last one of a page, as text that means nothing to clients. */
function encodePlace({ createdAt, id }: { createdAt: string; id: string }): string {
  return Buffer.from(JSON.stringify([Date.parse(createdAt), id])).toString('base64url')
}

const placeSchema = z.tuple([z.int().min(0), z.string().regex(/^[a-z]{3}_[0-9a-z]{1,64}$/)])

function decodePlace(cursor: string | undefined): Outcome<ListPlace | undefined> {
  if (cursor === undefined) return { ok: true, value: undefined }
  try {
    const [createdAtMs, id] = placeSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    return { ok: true, value: { createdAtMs, id } }
  } catch {
    return invalid(CURSOR_FAULT, 'operation')
  }
}
