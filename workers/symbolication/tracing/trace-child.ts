import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MIB } from '../../../schemas/units.ts'
import type { TraceAnswer, TraceMessage, TraceSettings } from './trace-messages.ts'

const ENTRY = fileURLToPath(new URL('./trace-process.ts', import.meta.url))
/** Stack of the main thread in KiB, for the recursion of the parser of sources. Systems allow at least 8 MiB. */
const STACK_KIB = 3_500

/** Time that a process may take to start, which no map is blamed for. */
const START_DEADLINE_MS = 10_000
/** Text of stderr that is searched for the fault that ended the process. */
const ERROR_CHARACTERS = 8_192
const FAULT = /(?:FATAL ERROR|Error): [^\n]{1,200}/

/** The result of a child that ended or missed the deadline. */
export interface DeadChild {
  readonly kind: 'dead'
  readonly reason: string
}

/** An answer that is awaited. */
interface AwaitedAnswer {
  /**
   * Returns the answer, or that the process is dead if it has not answered within the deadline, counted from this call. A
   * process that has not started yet has the time of its start besides.
   */
  within(): Promise<TraceAnswer | DeadChild>
  /** Stops counting, while something else than the process is waited for. */
  pause(): void
  readonly isSettled: boolean
  /** Ends the wait of a caller that does not need the answer any more. */
  drop(): void
}

/** Options of a child. */
interface TraceChildOptions {
  readonly settings: TraceSettings
  readonly heapBytes: number
  readonly deadlineMs: number
}

/**
 * A process that traces positions, as its parent sees it. It has a heap limit of its own, an empty environment, and ends
 * with its parent.
 */
export class TraceChild {
  readonly #process: ChildProcess
  readonly #exited: Promise<void>
  readonly #deadlineMs: number
  #endReason = ''
  #errorText = ''
  hasExited = false
  /** Whether it has started. A process that ends before has not ended because of a map. */
  isReady = false

  constructor({ settings, heapBytes, deadlineMs }: TraceChildOptions) {
    this.#deadlineMs = deadlineMs
    this.#process = fork(ENTRY, [JSON.stringify(settings)], {
      env: {},
      execArgv: [
        `--max-old-space-size=${Math.ceil(heapBytes / MIB)}`,
        '--max-semi-space-size=8',
        `--stack-size=${STACK_KIB}`,
        '--disable-warning=ExperimentalWarning',
      ],
      serialization: 'advanced',
      // The process ends when its stdin ends, and writes to stderr why it failed.
      stdio: ['pipe', 'ignore', 'pipe', 'ipc'],
    })
    this.#exited = new Promise(resolve => {
      const end = (reason: string) => {
        this.hasExited = true
        const [fault] = FAULT.exec(this.#errorText) ?? []
        this.#endReason = fault ? `${reason}: ${fault}` : reason
        resolve()
      }
      this.#process.once('exit', (code, signal) => end(`the process ended with ${signal ?? `code ${code}`}`))
      this.#process.once('error', error => end(`the process could not be started: ${error.message}`))
    })
    this.#process.once('message', () => {
      this.isReady = true
    })
    this.#process.stdin?.on('error', () => {})
    this.#process.stderr?.on('data', (text: Buffer) => {
      if (this.#errorText.length < ERROR_CHARACTERS) this.#errorText += text
    })
    // A worker that stops does not wait for a question.
    this.#process.unref()
    this.#process.channel?.unref()
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Sends a message and begins to wait for the answer to its question. */
  ask(message: TraceMessage): AwaitedAnswer {
    const { promise, resolve } = Promise.withResolvers<TraceAnswer | DeadChild>()
    let timer: NodeJS.Timeout | undefined
    const pause = () => clearTimeout(timer)
    const settle = (result: TraceAnswer | DeadChild) => {
      awaited.isSettled = true
      pause()
      this.#process.off('message', onMessage).off('exit', onEnd).off('error', onEnd)
      resolve(result)
    }
    const onEnd = () => settle({ kind: 'dead', reason: this.#endReason })
    const late = { kind: 'dead', reason: `it took more than ${this.#deadlineMs} ms` } as const
    const awaited = {
      isSettled: false,
      pause,
      drop: () => settle({ kind: 'dead', reason: 'the answer is not needed' }),
      within: () => {
        pause()
        const startMs = this.isReady ? 0 : START_DEADLINE_MS
        if (!awaited.isSettled) timer = setTimeout(() => settle(late), startMs + this.#deadlineMs)
        return promise
      },
    }
    const onMessage = (answer: unknown) => {
      if ((answer as TraceAnswer).id === message.id) settle(answer as TraceAnswer)
    }
    this.#process.on('message', onMessage).on('exit', onEnd).on('error', onEnd)
    if (this.hasExited) onEnd()
    void this.send(message)
    return awaited
  }

  /** Sends a message that continues a question. Resolves when the process has taken it, or cannot take it any more. */
  send(message: TraceMessage): Promise<void> {
    return new Promise(resolve => {
      // The exit of the process settles the answer, so an error needs no attention here.
      if (this.#process.connected) this.#process.send(message, () => resolve())
      else resolve()
    })
  }

  /** Kills the process. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#process.ref()
    this.#process.kill('SIGKILL')
    await this.#exited
  }
}
