/** Options of {@link forEachConcurrently}. */
interface ForEachOptions {
  /** Items in progress at the same time. */
  readonly concurrency: number
  /** No further item is started once an item has failed. Without it, the workers that have not failed continue. */
  readonly stopOnFailure?: boolean
  /** Runs after the first failure, for example to abort the items in progress. */
  readonly onFailure?: () => void
  /** No further item is started once this returns true. */
  readonly isDone?: () => boolean
}

/**
 * Runs `work` on every item: `concurrency` workers take the next item from one shared iterator. Settles when no item is
 * in progress any more, so that the caller may then free what the items refer to, and rethrows the first failure.
 */
export async function forEachConcurrently<T>(
  items: readonly T[],
  { concurrency, stopOnFailure = false, onFailure, isDone }: ForEachOptions,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const rest = items.entries()
  let failure: { readonly error: unknown } | undefined
  const runWorker = async () => {
    try {
      for (const [index, item] of rest) {
        if ((stopOnFailure && failure !== undefined) || isDone?.()) return
        await work(item, index)
      }
    } catch (error) {
      if (failure !== undefined) return
      failure = { error }
      onFailure?.()
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, runWorker))
  if (failure !== undefined) throw failure.error
}
