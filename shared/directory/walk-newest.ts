import type { ListPage } from './sorted-index.ts'

const PAGE = 200

/** Yields all records of a paged list, newest first. */
export async function* walkNewest<T extends { id: string; createdAt: string }>(
  list: (page: ListPage) => Promise<T[]>,
): AsyncGenerator<T> {
  let after: ListPage['after']
  for (;;) {
    const page = await list({ limit: PAGE, after })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = { createdAtMs: Date.parse(last.createdAt), id: last.id }
  }
}
