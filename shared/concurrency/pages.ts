/** Yields the items in consecutive groups of at most `size`. */
export function* pagesOf<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let page: T[] = []
  for (const item of items) {
    page.push(item)
    if (page.length < size) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}
