import { z } from 'zod'
import type { PageQuery } from '../../schemas/http/page.ts'
import type { ListPage } from '../../shared/directory/sorted-index.ts'
import { cutPage, decodeCursor, encodeCursor, type Page } from './cursor.ts'
import type { Outcome } from './outcome.ts'

const cursorSchema = z
  .tuple([z.int().min(0), z.string().regex(/^[a-z]{3}_[0-9a-z]{1,64}$/)])
  .transform(([createdAtMs, id]) => ({ createdAtMs, id }))

/** Returns the page that a query requests, for a list of the directory: newest first, by the time of creation. */
export function directoryPage({ limit, cursor }: PageQuery): Outcome<ListPage> {
  const after = decodeCursor(cursorSchema, cursor)
  return after.ok ? { ok: true, value: { limit, after: after.value } } : after
}

/** Returns the page to read from the directory: one more entry shows whether there is a next page. */
export function withOneMore({ limit, after }: ListPage): ListPage {
  return { limit: limit + 1, after }
}

/** Cuts the page out of the entries that were read, and encodes the cursor of the next page. */
export function cutDirectoryPage<T extends { createdAt: string; id: string }>(
  found: readonly T[],
  { limit }: ListPage,
): Page<T> {
  return cutPage(found, limit, ({ createdAt, id }) => encodeCursor([Date.parse(createdAt), id]))
}
