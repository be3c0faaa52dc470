import { newId } from '../session.ts'
import { openStorage, type TextStorage } from '../storage.ts'

/** A tab, and the number of its next chunk. */
interface WindowState {
  readonly id: string
  readonly nextSegment: number
}

const WINDOW_KEY = 'penstock.window'

/**
 * The chunks of a tab, which continue with its next page. A page takes the state of its tab out of the storage and puts it back
 * when it ends. So a duplicated tab, and one whose page has crashed, have a window of their own, and no number is used twice.
 */
export class RecordedWindow {
  readonly #storage: TextStorage
  #state: WindowState

  constructor(session: string, storage: TextStorage = openStorage('session')) {
    this.#storage = storage
    this.#state = this.#take(session) ?? { id: newId(), nextSegment: 0 }
    this.#session = session
  }

  readonly #session: string

  get id(): string {
    return this.#state.id
  }

  /** Returns the number of the next chunk. */
  next(): number {
    const { id, nextSegment } = this.#state
    this.#state = { id, nextSegment: nextSegment + 1 }
    return nextSegment
  }

  /** Leaves the window to the next page of the tab. */
  leave(): void {
    this.#storage.set(WINDOW_KEY, JSON.stringify({ session: this.#session, ...this.#state }))
  }

  /** Takes the window back, when a page that was left is shown again. */
  resume(): void {
    this.#state = this.#take(this.#session, this.#state.id) ?? { id: newId(), nextSegment: 0 }
  }

  #take(session: string, ofWindow?: string): WindowState | undefined {
    const text = this.#storage.get(WINDOW_KEY)
    this.#storage.remove(WINDOW_KEY)
    try {
      const left = JSON.parse(text ?? '{}') as Partial<WindowState & { readonly session: string }>
      const { id, nextSegment } = left
      const isUsable = left.session === session && typeof id === 'string' && Number.isSafeInteger(nextSegment)
      return isUsable && (ofWindow ?? id) === id ? { id, nextSegment: nextSegment as number } : undefined
    } catch {
      return undefined
    }
  }
}
