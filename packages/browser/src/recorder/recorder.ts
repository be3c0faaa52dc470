import { record } from '@rrweb/record'
import type { TextRequest } from '../delivery/outbox.ts'
import type { RecordingOptions } from '../options.ts'
import type { RequestFeed } from '../signals/request-feed.ts'
import { ChunkBuffer, MAX_EVENT_CHARACTERS } from './chunk-buffer.ts'
import { type Limit, MAX_BYTES, MAX_ELEMENTS, StormWatch } from './limits.ts'
import { EventMasker, maskInput, maskRules, maskText } from './masking.ts'
import { consoleLines, requests } from './plugins.ts'
import type { RecordedWindow } from './windows.ts'

/** Dependencies of a recording. */
export interface RecorderDeps {
  readonly options: RecordingOptions
  readonly session: string
  readonly window: RecordedWindow
  /** The requests of the page. */
  readonly feed: RequestFeed
  /** Called with each chunk. */
  readonly onChunk: (chunk: TextRequest) => void
}

/** A recording in progress. */
export interface Recording {
  /** Returns what has not become a chunk yet. */
  rest(): readonly TextRequest[]
  /** Continues when a page that had ended is shown again. */
  resume(): void
  stop(): void
}

const SNAPSHOT_EVERY_MS = 5 * 60_000
/** After this time in the background, a recording continues with a snapshot. */
const LONG_HIDDEN_MS = 30 * 60_000
const CUSTOM = 5

/** Starts to record the page. */
export function startRecording(deps: RecorderDeps): Recording {
  return new PageRecorder(deps)
}

class PageRecorder implements Recording {
  readonly #chunks: ChunkBuffer
  readonly #masker: EventMasker
  readonly #storm: StormWatch
  readonly #rules: ReturnType<typeof maskRules>
  readonly #plugins
  #stopRecorder: (() => void) | undefined
  #bytes = 0
  #isOver = false
  #hiddenAtMs = 0

  constructor({ options, session, window, feed, onChunk }: RecorderDeps) {
    this.#plugins = [consoleLines(), requests(feed)]
    this.#rules = maskRules(options)
    this.#masker = new EventMasker(this.#rules, id => record.mirror.getNode(id))
    this.#chunks = new ChunkBuffer(session, window, onChunk)
    this.#storm = new StormWatch(
      found => {
        this.#pause()
        this.#note({ reason: 'mutations', found })
      },
      () => this.#record(),
    )
    document.addEventListener('visibilitychange', this.#onVisibility)
    this.#record()
  }

  rest(): readonly TextRequest[] {
    return this.#chunks.rest()
  }

  resume(): void {
    this.#snapshot()
  }

  stop(): void {
    this.#pause()
    this.#storm.stop()
    document.removeEventListener('visibilitychange', this.#onVisibility)
    this.#chunks.stop()
  }

  readonly #onVisibility = () => {
    if (document.visibilityState === 'hidden') this.#hiddenAtMs = Date.now()
    else if (Date.now() - this.#hiddenAtMs > LONG_HIDDEN_MS) this.#snapshot()
  }

  #snapshot(): void {
    if (this.#stopRecorder !== undefined) record.takeFullSnapshot(true)
  }

  #record(): void {
    if (this.#isOver || this.#stopRecorder !== undefined) return
    const elements = document.getElementsByTagName('*').length
    if (elements > MAX_ELEMENTS) {
      this.#end({ reason: 'nodes', found: elements })
      return
    }
    this.#stopRecorder = record({
      emit: event => this.#add(event as unknown as RecordedEvent),
      checkoutEveryNms: SNAPSHOT_EVERY_MS,
      maskAllInputs: true,
      maskInputFn: maskInput,
      maskTextFn: maskText,
      maskTextSelector: this.#rules.mask,
      blockSelector: this.#rules.block,
      plugins: [...this.#plugins],
      recordCanvas: false,
      recordCrossOriginIframes: false,
      collectFonts: false,
      inlineImages: false,
      slimDOMOptions: 'all',
      sampling: { mousemove: 100, scroll: 150, media: 800 },
      // A fault of the recorder is not one of the page.
      errorHandler: () => true,
    })
  }

  #add(event: RecordedEvent): void {
    if (this.#isOver) return
    this.#masker.mask(event)
    const bytes = this.#chunks.add(event)
    this.#bytes += bytes ?? 0
    if (bytes === undefined) this.#end({ reason: 'bytes', found: MAX_EVENT_CHARACTERS })
    else if (this.#bytes > MAX_BYTES) this.#end({ reason: 'bytes', found: this.#bytes })
  }

  #pause(): void {
    this.#stopRecorder?.()
    this.#stopRecorder = undefined
  }

  #end(limit: Limit): void {
    this.#pause()
    this.#note(limit)
    this.#isOver = true
  }

  /** States in the recording what it lacks from here. */
  #note(limit: Limit): void {
    this.#chunks.add({ type: CUSTOM, timestamp: Date.now(), data: { tag: 'penstock.limit', payload: limit } })
  }
}

/** An event of rrweb. */
export interface RecordedEvent {
  readonly type: number
  readonly timestamp: number
  readonly data: unknown
}
