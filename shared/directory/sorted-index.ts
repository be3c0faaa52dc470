import type { Redis } from 'ioredis'
import { directoryScript } from './directory-script.ts'

/** Identifies a record of a list that is ordered by time, at which a page ends. */
interface ListCursor {
  readonly createdAtMs: number
  readonly id: string
}

/** A page of a list. `after` is the last record of the previous page, which may have been removed since. */
export interface ListPage {
  readonly limit: number
  readonly after?: ListCursor | undefined
}

const WALK_PAGE = 500

/**
 * Yields the names of an index by name, in pages and in the order of their bytes. Every name that stays is yielded once. A
 * name that is added or removed meanwhile may be missing.
 */
export async function* walkNames(redis: Redis, index: string): AsyncGenerator<string[]> {
  let from = '-'
  for (;;) {
    const names = await redis.zrange(index, from, '+', 'BYLEX', 'LIMIT', 0, WALK_PAGE)
    if (names.length > 0) yield names
    if (names.length < WALK_PAGE) return
    from = `(${names.at(-1)}`
  }
}

const LIST_NEWEST = directoryScript('list-newest')

/**
 * Reads a page of an index by time, newest first. `load` reads the records of its ids. Records that were deleted meanwhile
 * are replaced by the next ones, so that only the last page is shorter than `limit`.
 */
export async function listNewest<T>(
  redis: Redis,
  index: string,
  { limit, after }: ListPage,
  load: (ids: string[]) => Promise<readonly (T | undefined)[]>,
): Promise<T[]> {
  const found: T[] = []
  let cursor = after
  while (found.length < limit) {
    const missing = limit - found.length
    const reply = await LIST_NEWEST.run(redis, [index], [missing, cursor?.createdAtMs ?? '+inf', cursor?.id ?? ''])
    const words = reply as string[]
    const ids = words.filter((_, i) => i % 2 === 0)
    if (ids.length > 0) {
      for (const record of await load(ids)) if (record !== undefined) found.push(record)
      cursor = { id: ids.at(-1) ?? '', createdAtMs: Number(words.at(-1)) }
    }
    if (ids.length < missing) break
  }
  return found
}

/** Records that are read at once by `walkNewest`. */
const WALKED_PAGE = 200

/** Yields all records of a paged list, newest first. */
export async function* walkNewest<T extends { id: string; createdAt: string }>(
  list: (page: ListPage) => Promise<T[]>,
): AsyncGenerator<T> {
  let after: ListPage['after']
  for (;;) {
    const page = await list({ limit: WALKED_PAGE, after })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < WALKED_PAGE) return
    after = { createdAtMs: Date.parse(last.createdAt), id: last.id }
  }
}
