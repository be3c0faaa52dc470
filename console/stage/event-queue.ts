import { EVENT, type RecordedEvent } from './recorded-event.ts'

interface Waiting {
  readonly event: RecordedEvent
  /** Bytes of its line. */
  readonly bytes: number
}

/**
 * Events that wait for their time, ordered by it. Nearly all come in this order, but those of a hostile recording need not. They
 * are sorted when the first one is read: inserting each at its position would take time with the square of their number.
 */
export class EventQueue {
  #events: Waiting[] = []
  #first = 0
  #bytes = 0
  #isOrdered = true
  /** The snapshot before which no event is needed. */
  #begin: RecordedEvent | undefined

  /** Bytes of the lines of all events that wait. */
  get bytes(): number {
    this.#settle()
    return this.#bytes
  }

  /** Time of the first event. */
  get nextAt(): number | undefined {
    this.#settle()
    return this.#events[this.#first]?.event.timestamp
  }

  /** Adds an event, behind those of the same time. */
  add(event: RecordedEvent, bytes: number): void {
    const last = this.#events.at(-1)
    if (last !== undefined && last.event.timestamp > event.timestamp) this.#isOrdered = false
    this.#events.push({ event, bytes })
    this.#bytes += bytes
  }

  /** Removes the events before a full snapshot that was added, which replaces all that they draw. */
  beginAt(snapshot: RecordedEvent): void {
    if (this.#begin === undefined || snapshot.timestamp >= this.#begin.timestamp) this.#begin = snapshot
  }

  /** Takes the first event, if it is at this time or earlier. */
  take(atMost: number): RecordedEvent | undefined {
    this.#settle()
    const first = this.#events[this.#first]
    if (first === undefined || first.event.timestamp > atMost) return undefined
    this.#first++
    this.#bytes -= first.bytes
    if (this.#first > 1_000 && this.#first * 2 > this.#events.length) this.#drop(this.#first)
    return first.event
  }

  #settle(): void {
    if (!this.#isOrdered) {
      this.#drop(this.#first)
      this.#events.sort((a, b) => a.event.timestamp - b.event.timestamp)
      this.#isOrdered = true
    }
    const begin = this.#begin
    if (begin === undefined) return
    this.#begin = undefined
    const at = this.#events.findIndex(({ event }, i) => i >= this.#first && event === begin)
    const size = this.#events.slice(this.#first, at).findLast(({ event }) => event.type === EVENT.meta)
    this.#drop(at)
    if (size) this.#events.unshift(size)
    this.#bytes = this.#events.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #drop(count: number): void {
    this.#events = this.#events.slice(count)
    this.#first = 0
  }
}
