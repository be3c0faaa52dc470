import { type ConsoleLog, levelOf } from './console-log.ts'

/** Steps of a start. `bootstrap.mjs` has shown the first one. */
const STEPS = 6
/** The first level of pino that matters while a start shows its steps. */
const WARN = 40
const REDRAW_MS = 1_000

/** Options of a `StartLog`. */
interface StartLogOptions {
  readonly log: ConsoleLog
  readonly write: (text: string) => void
  /** Columns of a terminal whose last line can change. Undefined for other outputs, which get a line for each event. */
  readonly columns: (() => number) | undefined
  /** Whether to show every line of the processes. */
  readonly isVerbose: boolean
  readonly now?: () => number
}

/**
 * Shows the steps of a start: in a terminal on one line that changes, elsewhere a line for each. Warnings and errors of the
 * processes are shown too, and what is not a log record, such as the stack of a crash. Once everything is ready, all lines are.
 */
export class StartLog implements ConsoleLog {
  readonly #options: StartLogOptions
  readonly #now: () => number
  #step = 1
  #title = ''
  #detail = ''
  #stepStartedAt = 0
  #isStepping = true
  #isReady = false
  #isDrawn = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: StartLogOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Shows that the next step begins. */
  step(title: string): void {
    if (!this.#isStepping) return
    this.#step++
    this.#title = title
    this.#detail = ''
    this.#stepStartedAt = this.#now()
    if (this.#options.columns) {
      this.#timer ??= setInterval(() => this.#draw(), REDRAW_MS).unref()
      this.#draw()
    } else {
      this.#options.write(`[${this.#step}/${STEPS}] ${title}\n`)
    }
  }

  /** Shows what a step has achieved so far: in a terminal only until there is something newer. */
  progress(name: string, text: string): void {
    if (this.#isStepping && this.#options.columns) {
      this.#detail = `${name} ${text}`
      this.#draw()
    } else {
      this.note(name, text)
    }
  }

  line(name: string, line: string): void {
    if (!this.#isReady && !this.#options.isVerbose && (levelOf(line) ?? WARN) < WARN) return
    this.#beside(() => this.#options.log.line(name, line))
  }

  note(name: string, text: string): void {
    this.#beside(() => this.#options.log.note(name, text))
  }

  /** Ends the steps, and shows all lines from now on. */
  ready(): void {
    this.stop()
    this.#isReady = true
  }

  /** Ends the steps. If they have failed, routine lines stay hidden. */
  stop(): void {
    clearInterval(this.#timer)
    this.#erase()
    this.#isStepping = false
  }

  #beside(show: () => void): void {
    const wasDrawn = this.#isDrawn
    this.#erase()
    show()
    if (wasDrawn) this.#draw()
  }

  #draw(): void {
    const { columns, write } = this.#options
    if (!columns || !this.#isStepping) return
    const seconds = Math.floor((this.#now() - this.#stepStartedAt) / 1_000)
    const parts = [this.#title, ...(seconds > 0 ? [`${seconds} s`] : []), ...(this.#detail ? [this.#detail] : [])]
    this.#erase()
    // A line that wraps could not be erased.
    write(`[${this.#step}/${STEPS}] ${parts.join(' · ')}`.slice(0, columns() - 1))
    this.#isDrawn = true
  }

  #erase(): void {
    if (this.#isDrawn) this.#options.write('\r\x1b[2K')
    this.#isDrawn = false
  }
}
