import { KIB, MIB } from '../../schemas/units.ts'
import { EventQueue } from './event-queue.ts'
import { hardenEvent } from './harden-event.ts'
import type { RecordedEntry, StageOrder, StageReport } from './messages.ts'
import { Picture } from './picture.ts'
import { entriesOf } from './recorded-entry.ts'
import { cutMoves, EVENT, isActivity, numberOr, parseEvent } from './recorded-event.ts'

/** Longest time for which the browser is kept from drawing and from keys. One event may take longer. */
const TURN_MS = 25
/** Bytes of events that wait, at which no more are read. */
const WAITING_BYTES_MAX = 8 * MIB
const ACTIVITY_EVERY_MS = 1_000

/** Plays the events of one window of a recording: reads portions of them, and applies those whose time has come. */
export class Performance {
  readonly #report: (message: StageReport) => void
  readonly #picture: Picture
  #run = 0
  #target = 0
  #isPlaying = false
  #queue = new EventQueue()
  #portions: { readonly lines: LineReader; readonly through: number }[] = []
  #hasPicture = false
  #firstPictureAt: number | undefined
  #reached = 0
  /** Time before which all events are read. */
  #through = Number.NEGATIVE_INFINITY
  #isWorking = false
  #lastActivityAt = Number.NEGATIVE_INFINITY
  #refused = 0

  constructor(root: HTMLElement, report: (message: StageReport) => void) {
    this.#report = report
    this.#picture = new Picture(root, (width, height) => {
      report({ kind: 'size', width: numberOr(width, 0), height: numberOr(height, 0) })
    })
  }

  /** Follows an order of the console. Orders for a run that is over are ignored. */
  order(order: StageOrder): void {
    if (order.kind === 'begin') this.#begin(order.run, order.target)
    else if (order.run !== this.#run) return
    else if (order.kind === 'portion') {
      this.#portions.push({ lines: new LineReader(order.lines), through: order.through })
    } else {
      this.#target = order.target
      this.#isPlaying = order.isPlaying
    }
    void this.#work()
  }

  #begin(run: number, target: number): void {
    this.#run = run
    this.#target = target
    this.#queue = new EventQueue()
    this.#portions = []
    this.#hasPicture = false
    this.#firstPictureAt = undefined
    this.#reached = 0
    this.#through = Number.NEGATIVE_INFINITY
    this.#lastActivityAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Works in turns until nothing is left to do. A turn has as many pieces as it has time for: after each turn the browser may draw,
   * and while it catches up, pictures that are not yet those of the time delay the one that is.
   */
  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    try {
      let end = now() + TURN_MS
      for (let hasMore = true; hasMore; ) {
        const hasRead = await this.#read()
        const hasApplied = this.#apply(end)
        hasMore = hasRead || hasApplied
        if (hasMore && now() < end) continue
        this.#reportProgress(!hasMore)
        if (hasMore) await nextTurn()
        end = now() + TURN_MS
      }
    } finally {
      this.#isWorking = false
    }
  }

  /** Reads a piece of the first portion, unless enough events wait. Returns whether it did. */
  async #read(): Promise<boolean> {
    const [portion] = this.#portions
    const { nextAt } = this.#queue
    const isFull = this.#queue.bytes > WAITING_BYTES_MAX && nextAt !== undefined
    if (portion === undefined || isFull) return false
    const run = this.#run
    const lines = await portion.lines.read()
    if (run !== this.#run) return true
    if (lines === undefined) {
      this.#portions.shift()
      this.#through = portion.through
      return true
    }
    const entries: RecordedEntry[] = []
    const active: number[] = []
    for (const { text, bytes } of lines) this.#add(text, bytes, entries, active)
    if (entries.length > 0) this.#report({ kind: 'recorded', run, entries })
    if (active.length > 0) this.#report({ kind: 'activity', run, times: active })
    return true
  }

  #add(text: string | undefined, bytes: number, entries: RecordedEntry[], active: number[]): void {
    const event = text === undefined ? undefined : parseEvent(text)
    if (event === undefined || !hardenEvent(event)) {
      this.#refused++
      return
    }
    entries.push(...entriesOf(event))
    if (isActivity(event) && event.timestamp - this.#lastActivityAt >= ACTIVITY_EVERY_MS) {
      this.#lastActivityAt = event.timestamp
      active.push(event.timestamp)
    }
    for (const one of cutMoves(event)) this.#queue.add(one, bytes)
    if (event.type !== EVENT.fullSnapshot) return
    this.#firstPictureAt = Math.min(this.#firstPictureAt ?? event.timestamp, event.timestamp)
    if (event.timestamp <= this.#target) this.#queue.beginAt(event)
  }

  /** Applies the events whose time has come, one at least, until the turn ends. Returns whether there may be more. */
  #apply(end: number): boolean {
    const { nextAt } = this.#queue
    if (nextAt === undefined || nextAt > this.#target) {
      this.#reached = Math.max(this.#reached, Math.min(this.#target, this.#through))
      return false
    }
    do {
      const event = this.#queue.take(this.#target)
      if (event === undefined) break
      // Before the first snapshot, changes would be applied to the picture of another time.
      const { type, timestamp } = event
      if (!this.#hasPicture && type !== EVENT.fullSnapshot && type !== EVENT.meta) continue
      try {
        this.#picture.apply(event, this.#isPlaying)
        if (type === EVENT.fullSnapshot) this.#hasPicture = true
      } catch {
        this.#refused++
      }
      this.#reached = Math.max(this.#reached, timestamp)
    } while (now() < end)
    if (this.#hasPicture) this.#picture.finish(this.#isPlaying)
    return true
  }

  #reportProgress(isIdle: boolean): void {
    this.#report({
      kind: 'progress',
      run: this.#run,
      reached: this.#reached,
      hasPicture: this.#hasPicture,
      firstPictureAt: this.#firstPictureAt,
      isIdle,
      waitingPortions: this.#portions.length,
      waitingBytes: this.#queue.bytes,
    })
    if (this.#refused > 0) this.#report({ kind: 'refused', count: this.#refused })
    this.#refused = 0
  }
}

const now = () => globalThis.performance.now()
const turns = new MessageChannel()
turns.port1.start()

/** Waits until the browser has done what else it has to do. Unlike timers, this is not delayed. */
function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    turns.port1.addEventListener('message', () => resolve(), { once: true })
    turns.port2.postMessage(undefined)
  })
}

const PIECE_BYTES = 128 * KIB
/** Longest line that is read, as of a stored chunk. A snapshot of a very large page has a tenth of that. */
const LINE_BYTES_MAX = 16 * MIB

/** A line and its size. The text is undefined if the line is too long. */
interface Line {
  readonly text: string | undefined
  readonly bytes: number
}

/** Reads the lines of a file piece by piece, so that no more than one line and one piece are in memory. */
class LineReader {
  readonly #lines: Blob
  readonly #decoder = new TextDecoder()
  #at = 0
  #begun: string[] = []
  #begunBytes = 0

  constructor(lines: Blob) {
    this.#lines = lines
  }

  /** Returns the lines that end in the next piece, or undefined at the end. */
  async read(): Promise<readonly Line[] | undefined> {
    if (this.#at >= this.#lines.size) return undefined
    const piece = await this.#lines.slice(this.#at, this.#at + PIECE_BYTES).arrayBuffer()
    this.#at += piece.byteLength
    const isLast = this.#at >= this.#lines.size
    const parts = this.#decoder.decode(piece, { stream: !isLast }).split('\n')
    const lines: Line[] = []
    for (const [i, part] of parts.entries()) {
      this.#begunBytes += part.length
      if (this.#begunBytes <= LINE_BYTES_MAX) this.#begun.push(part)
      if (i === parts.length - 1 && !isLast) break
      const isTooLong = this.#begunBytes > LINE_BYTES_MAX
      const text = isTooLong ? undefined : this.#begun.join('')
      if (text !== '') lines.push({ text, bytes: this.#begunBytes })
      this.#begun = []
      this.#begunBytes = 0
    }
    return lines
  }
}
