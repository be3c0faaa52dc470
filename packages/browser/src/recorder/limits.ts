/** Why a recording pauses or ends. The recording states it in an event of the kind "custom" with the tag `penstock.limit`. */
export interface Limit {
  readonly reason: 'nodes' | 'mutations' | 'bytes'
  /** Number of nodes, of changes within a second, or of bytes. */
  readonly found: number
}

/** A page with more elements is not recorded: its snapshot would stop the page for over a second. */
export const MAX_ELEMENTS = 100_000
/** Changes of the page within a second over which the recording pauses. */
const MAX_CHANGES = 5_000
/** Bytes of events of a page, before compression. */
export const MAX_BYTES = 100 * 1024 * 1024
const SECOND_MS = 1_000

/**
 * Counts changes of the page before the recorder sees them: observers run in the order in which they were made. Calls `onTooMany`
 * in the middle of a storm, when the recorder can still be stopped before it works on it, and `onQuiet` a second after its end.
 */
export class StormWatch {
  readonly #observer: MutationObserver
  readonly #onTooMany: (changes: number) => void
  readonly #onQuiet: () => void
  #sinceMs = 0
  #changes = 0
  #isStorm = false
  #quiet: ReturnType<typeof setTimeout> | undefined

  constructor(onTooMany: (changes: number) => void, onQuiet: () => void) {
    this.#onTooMany = onTooMany
    this.#onQuiet = onQuiet
    this.#observer = new MutationObserver(records => this.#count(records))
    this.#observer.observe(document, { childList: true, subtree: true, attributes: true, characterData: true })
  }

  stop(): void {
    this.#observer.disconnect()
    clearTimeout(this.#quiet)
  }

  #count(records: readonly MutationRecord[]): void {
    const now = performance.now()
    if (now - this.#sinceMs > SECOND_MS) {
      this.#sinceMs = now
      this.#changes = 0
    }
    for (const { addedNodes } of records) this.#changes += 1 + addedNodes.length
    if (this.#changes <= MAX_CHANGES) return
    if (!this.#isStorm) this.#onTooMany(this.#changes)
    this.#isStorm = true
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => {
      this.#isStorm = false
      this.#onQuiet()
    }, SECOND_MS)
  }
}
