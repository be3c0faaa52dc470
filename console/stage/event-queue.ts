import { EVENT, type RecordedEvent } from './recorded-event.ts'

interface Waiting {
  readonly event: RecordedEvent
  /** Bytes of its line. */
  readonly bytes: number
}

/** Events that wait for their time, ordered by it. */
export class EventQueue {
  #events: Waiting[] = []
  #first = 0
  /** Bytes of the lines of all events that wait. */
  bytes = 0

  /** Time of the first event. */
  get nextAt(): number | undefined {
    return this.#events[this.#first]?.event.timestamp
  }

  /** Adds an event, behind those of the same time. Nearly all events come in the order of time. */
  add(event: RecordedEvent, bytes: number): void {
    let at = this.#events.length
    while (at > this.#first && (this.#events[at - 1] as Waiting).event.timestamp > event.timestamp) at--
    this.#events.splice(at, 0, { event, bytes })
    this.bytes += bytes
  }

  /** Removes the events before a full snapshot that is at its end, which replaces all that they draw. */
  beginAtLast(): void {
    const last = this.#events.length - 1
    const sizes = this.#events.slice(this.#first, last).filter(({ event }) => event.type === EVENT.meta)
    this.#events = [...sizes.slice(-1), this.#events[last] as Waiting]
    this.#first = 0
    this.bytes = this.#events.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Takes the first event, if it is at this time or earlier. */
  take(atMost: number): RecordedEvent | undefined {
    const first = this.#events[this.#first]
    if (first === undefined || first.event.timestamp > atMost) return undefined
    this.#first++
    this.bytes -= first.bytes
    if (this.#first > 1_000 && this.#first * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#first)
      this.#first = 0
    }
    return first.event
  }
}
