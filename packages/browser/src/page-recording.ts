import type { TextRequest } from './delivery/outbox.ts'
import type { RecordingOptions } from './options.ts'
import type { Recording } from './recorder/recorder.ts'
import { RecordedWindow } from './recorder/windows.ts'
import { isSampled } from './sampling.ts'
import type { RequestFeed } from './signals/request-feed.ts'

/** The recording of a page, whose code is loaded once the page is painted and idle. */
export class PageRecording {
  readonly #options: RecordingOptions | undefined
  readonly #feed: RequestFeed
  readonly #onChunk: (chunk: TextRequest) => void
  /** Taken before the recorder is loaded, because a tab that is duplicated meanwhile must not find it. */
  #window: RecordedWindow | undefined
  #recording: Recording | undefined

  constructor(options: RecordingOptions | undefined, feed: RequestFeed, onChunk: (chunk: TextRequest) => void) {
    this.#options = options
    this.#feed = feed
    this.#onChunk = onChunk
  }

  /** Records a session, if it is among those that are recorded. The recording of another session ends. */
  start(session: string): void {
    this.stop()
    const { sample = 0 } = this.#options ?? {}
    if (!isSampled(session, 'recording', sample)) return
    const window = new RecordedWindow(session)
    this.#window = window
    void painted().then(() => this.#load(session, window))
  }

  /** Returns what has not become a chunk yet, for a page that is hidden or ends. */
  rest(): readonly TextRequest[] {
    return this.#recording?.rest() ?? []
  }

  /** Leaves the recording to the next page of the tab. */
  leave(): void {
    this.#window?.leave()
  }

  resume(): void {
    this.#window?.resume()
    this.#recording?.resume()
  }

  stop(): void {
    this.#recording?.stop()
    this.#recording = undefined
    this.#window = undefined
  }

  async #load(session: string, window: RecordedWindow): Promise<void> {
    try {
      const { startRecording } = await import('./recorder/recorder.ts')
      if (this.#window !== window || this.#recording !== undefined) return
      this.#recording = startRecording({
        options: this.#options ?? {},
        session,
        window,
        feed: this.#feed,
        onChunk: this.#onChunk,
      })
    } catch (error) {
      console.warn('[penstock] nothing is recorded', error)
    }
  }
}

/** Resolves when the page is loaded, painted and idle. */
async function painted(): Promise<void> {
  if (document.readyState !== 'complete') {
    await new Promise(resolve => addEventListener('load', resolve, { once: true }))
  }
  await firstPaint()
  await new Promise(resolve => {
    if (typeof requestIdleCallback === 'undefined') setTimeout(resolve, 200)
    else requestIdleCallback(resolve, { timeout: 2_000 })
  })
}

/** Longest time that a page is waited for which is not shown, and so not painted. */
const UNPAINTED_MS = 3_000

/** Resolves when the browser has shown content of the page. */
function firstPaint(): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, UNPAINTED_MS)
    const observer = new PerformanceObserver(list => {
      if (list.getEntriesByName('first-contentful-paint').length === 0) return
      observer.disconnect()
      clearTimeout(timer)
      resolve()
    })
    observer.observe({ type: 'paint', buffered: true })
  })
}
