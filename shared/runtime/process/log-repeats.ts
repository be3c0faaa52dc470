/** After a line, further ones with the same key are counted for this time. */
const QUIET_MS = 10_000
/** Keys that are followed at once. Keys contain texts of errors, whose number has no bound. */
const MAX_KEYS = 500

/** Writes the line of one event. `repeated` is the number of further events that it counts. */
type WriteLine = (repeated: number) => void

interface Flood {
  readonly timer: NodeJS.Timeout
  /** Events since the last line. */
  waiting: number
  /** Writes the line of the last of them. */
  write: WriteLine
}

/**
 * Turns a flood of equal log lines into one line each 10 s. The first event is written at once. The line after it is that of
 * the last event in these 10 s, and `repeated` counts the others. So lines and their `repeated` add up to the events.
 */
export class LogRepeats {
  readonly #floods = new Map<string, Flood>()

  /** Writes the line of an event now, or counts it for a later line with the same key. */
  add(key: string, write: WriteLine): void {
    const flood = this.#floods.get(key)
    if (flood !== undefined) {
      flood.waiting++
      flood.write = write
      return
    }
    const [oldest] = this.#floods.size >= MAX_KEYS ? this.#floods.keys() : []
    if (oldest !== undefined) this.#end(oldest)
    const timer = setInterval(() => this.#next(key), QUIET_MS).unref()
    this.#floods.set(key, { timer, waiting: 0, write })
    write(0)
  }

  /** Writes what is counted and not written yet. */
  flush(): void {
    for (const key of this.#floods.keys()) this.#end(key)
  }

  #next(key: string): void {
    const flood = this.#floods.get(key)
    if (flood === undefined) return
    if (flood.waiting === 0) this.#end(key)
    else writeWaiting(flood)
  }

  #end(key: string): void {
    const flood = this.#floods.get(key)
    if (flood === undefined) return
    clearInterval(flood.timer)
    this.#floods.delete(key)
    if (flood.waiting > 0) writeWaiting(flood)
  }
}

function writeWaiting(flood: Flood): void {
  const others = flood.waiting - 1
  flood.waiting = 0
  flood.write(others)
}
