/**
 * Runs `work` on every item, at most `concurrency` at the same time. After a failure no further item is started. Settles
 * when no item is in progress any more, and rethrows the first failure. `onFailure` may abort the items in progress.
 */
export async function forEach<T>(
  items: readonly T[],
  { concurrency, onFailure }: { readonly concurrency: number; readonly onFailure?: () => void },
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const rest = items.entries()
  const failures: unknown[] = []
  const runWorker = async () => {
    for (const [index, item] of rest) {
      if (failures.length > 0) return
      await work(item, index)
    }
  }
  const run = () =>
    runWorker().catch((error: unknown) => {
      if (failures.push(error) === 1) onFailure?.()
    })
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, run))
  if (failures.length > 0) throw failures[0]
}
