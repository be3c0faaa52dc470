import { MIB } from '../../schemas/units.ts'
import { type Fault, faultOf } from '../api/client.ts'
import { readReplayEvents } from '../api/generated/client.ts'
import type { RecordedWindow } from './recording.ts'

/** Events of a time of a window, as JSON lines. */
interface Portion {
  readonly lines: Blob
  /** All events before this time have been read. */
  readonly through: number
}

/** Size at which a portion ends, as JSON. A chunk that is larger is one portion. */
const PORTION_BYTES = MIB
/** Behind the last chunk there is nothing to wait for. */
const END = Number.MAX_SAFE_INTEGER
const LONGEST_WAIT_MS = 5_000

/** Reads the events of a window from one of its chunks on, portion by portion. */
export class Feed {
  readonly #sessionId: string
  readonly #window: RecordedWindow
  readonly #onPortion: (portion: Portion) => void
  readonly #onFault: (fault: Fault | undefined) => void
  readonly #closed = new AbortController()
  #next: number
  #isReading = false
  #failures = 0
  /** Time before which all events were requested. */
  asked: number

  constructor(
    sessionId: string,
    window: RecordedWindow,
    first: number,
    on: { readonly portion: (portion: Portion) => void; readonly fault: (fault: Fault | undefined) => void },
  ) {
    this.#sessionId = sessionId
    this.#window = window
    this.#next = first
    this.#onPortion = on.portion
    this.#onFault = on.fault
    this.asked = window.chunks[first]?.firstMs ?? END
  }

  /**
   * Reads one portion, unless one is being read or everything before `until` was requested. Until `at` is reached, a portion ends
   * with it, because its events are drawn when all of them have arrived.
   */
  want(at: number, until: number): void {
    if (this.#isReading || this.#closed.signal.aborted || this.asked > until || this.asked === END) return
    void this.#read(at)
  }

  close(): void {
    this.#closed.abort()
  }

  async #read(at: number): Promise<void> {
    this.#isReading = true
    const { chunks, id } = this.#window
    let end = this.#next
    const isFirst = this.asked <= at
    for (let bytes = 0; end < chunks.length && bytes < PORTION_BYTES; end++) {
      if (isFirst && end > this.#next && (chunks[end]?.firstMs ?? 0) > at) break
      bytes += chunks[end]?.bytes ?? 0
    }
    const from = this.asked
    const through = chunks[end]?.firstMs ?? END
    const { signal } = this.#closed
    try {
      const lines = await readReplayEvents(
        {
          sessionId: this.#sessionId,
          window: id,
          $from: rfc3339(from),
          // Chunks may begin at the same time.
          ...(through !== END && { to: rfc3339(Math.max(through, from + 1)) }),
        },
        { signal },
      )
      if (signal.aborted) return
      this.#next = end
      this.asked = through === END ? END : Math.max(through, from + 1)
      this.#failures = 0
      this.#isReading = false
      this.#onFault(undefined)
      this.#onPortion({ lines, through: this.asked })
    } catch (error) {
      if (signal.aborted) return
      const fault = faultOf(error)
      this.#onFault(fault)
      if (fault.retryAfterMs === undefined) return
      const wait = Math.min(fault.retryAfterMs * 2 ** this.#failures++, LONGEST_WAIT_MS)
      const timer = setTimeout(() => void this.#read(at), wait)
      signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
    }
  }
}

const rfc3339 = (ms: number) => new Date(ms).toISOString()
