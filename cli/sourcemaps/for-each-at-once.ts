/**
 * Runs `work` on every item, at most `limit` at once. After the first failure nothing new begins, `onFailure` may end what
 * is under way, and the failure is thrown when all of it has settled.
 */
export async function forEachAtOnce<T>(
  limit: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
  onFailure?: () => void,
): Promise<void> {
  let next = 0
  let failure: { error: unknown } | undefined
  const lane = async () => {
    while (next < items.length && failure === undefined) {
      const index = next++
      try {
        await work(items[index] as T, index)
      } catch (error) {
        if (failure === undefined) onFailure?.()
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane))
  if (failure) throw failure.error
}
