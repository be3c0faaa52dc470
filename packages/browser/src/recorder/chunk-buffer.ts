import type { TextRequest } from '../delivery/outbox.ts'
import type { RecordedWindow } from './windows.ts'

/** A part of a recording is sent this often, and when it has this many characters. */
const CHUNK_EVERY_MS = 1_000
const CHUNK_CHARACTERS = 256 * 1024

/** The service takes lines of 16 MiB. */
export const MAX_EVENT_CHARACTERS = 5 * 1024 * 1024

const FULL_SNAPSHOT = 2
const INCREMENTAL = 3
/** Sources of rrweb that a person causes: mouse, touch, scroll, input, selection. */
const ACTIVE_SOURCES = new Set([1, 2, 3, 5, 6, 12])

/** An event of a recording. */
interface TimedEvent {
  readonly type: number
  readonly timestamp: number
  readonly data: unknown
}

/** Collects events into chunks, each with its number in the window. */
export class ChunkBuffer {
  readonly #session: string
  readonly #onChunk: (chunk: TextRequest) => void
  readonly #window: RecordedWindow
  #lines: string[] = []
  #characters = 0
  #firstTs = Number.POSITIVE_INFINITY
  #lastTs = 0
  #activity = 0
  #hasSnapshot = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(session: string, window: RecordedWindow, onChunk: (chunk: TextRequest) => void) {
    this.#session = session
    this.#window = window
    this.#onChunk = onChunk
  }

  /** Adds an event. Returns its size, or undefined if the service would not take it. */
  add(event: TimedEvent): number | undefined {
    const line = JSON.stringify(event)
    if (line.length > MAX_EVENT_CHARACTERS) return undefined
    this.#lines.push(line)
    this.#characters += line.length
    this.#firstTs = Math.min(this.#firstTs, event.timestamp)
    this.#lastTs = Math.max(this.#lastTs, event.timestamp)
    if (event.type === FULL_SNAPSHOT) this.#hasSnapshot = true
    if (event.type === INCREMENTAL && ACTIVE_SOURCES.has((event.data as { source: number }).source)) this.#activity++
    if (this.#characters > CHUNK_CHARACTERS) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), CHUNK_EVERY_MS)
    return line.length
  }

  /** Returns what waits. */
  rest(): readonly TextRequest[] {
    const chunk = this.#take()
    return chunk === undefined ? [] : [chunk]
  }

  stop(): void {
    this.#send()
  }

  #send(): void {
    const chunk = this.#take()
    if (chunk !== undefined) this.#onChunk(chunk)
  }

  #take(): TextRequest | undefined {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#lines.length === 0) return undefined
    const metadata = {
      windowId: this.#window.id,
      segmentId: this.#window.next(),
      firstTs: this.#firstTs,
      lastTs: this.#lastTs,
      activityCount: this.#activity,
      hasFullSnapshot: this.#hasSnapshot,
    }
    const text = `${this.#lines.join('\n')}\n`
    this.#lines = []
    this.#characters = 0
    this.#firstTs = Number.POSITIVE_INFINITY
    this.#lastTs = 0
    this.#activity = 0
    this.#hasSnapshot = false
    const query = encodeURIComponent(btoa(JSON.stringify(metadata)))
    const target = `/v3/replay/upload/${encodeURIComponent(this.#session)}?metadata=${query}`
    return { target, contentType: 'application/octet-stream', text }
  }
}
