import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** Receives each line that a child writes. */
export type LineLog = (line: string) => void

/** How a child ended. */
export interface ChildExit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A running child with its process group. */
export interface ChildProcess {
  readonly pid: number
  /** Resolves when the child and its process group have ended. Never rejects. */
  readonly exited: Promise<ChildExit>
  readonly hasExited: boolean
  /** Sends SIGTERM (or calls `askToEnd`), and kills the group if it has not ended after `deadlineMs`. */
  stop(deadlineMs?: number): Promise<void>
  /** Kills the process group and waits until it has ended. */
  kill9(): Promise<void>
}

/** Options of `startChild`. */
interface ChildOptions {
  command: string
  args: string[]
  env?: Record<string, string | undefined>
  cwd?: string
  /** Text for the child's stdin, which stays open. Its end shows the child that this process has ended. */
  firstInput?: string
  /** An open file that becomes the child's stdin instead of a pipe. */
  stdinFd?: number
  /** Asks the child to end. Default: SIGTERM. */
  askToEnd?: (stdin: Writable | null) => void
  /** Time after which `stop` kills the child. Default: 3 s. */
  stopDeadlineMs?: number
  log: LineLog
}

/**
 * Starts a child in its own process group. Ctrl-C in a terminal then reaches only the process that decides the order of
 * stopping, and killing the group also ends the child's own children (workerd, esbuild).
 */
export async function startChild(options: ChildOptions): Promise<ChildProcess> {
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: options.env as NodeJS.ProcessEnv | undefined,
    detached: true,
    stdio: [options.stdinFd ?? 'pipe', 'pipe', 'pipe'],
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  const pid = child.pid as number
  child.stdin?.on('error', () => {})
  if (options.firstInput !== undefined) child.stdin?.write(options.firstInput)
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', options.log)
  }

  let hasExited = false
  const exited = new Promise<ChildExit>(resolve => {
    child.once('exit', (code, signal) => {
      hasExited = true
      signalGroup(pid, 'SIGKILL')
      resolve({ code, signal })
    })
  })

  return {
    pid,
    exited,
    get hasExited() {
      return hasExited
    },
    async stop(deadlineMs = options.stopDeadlineMs ?? 3_000) {
      if (options.askToEnd) options.askToEnd(child.stdin)
      else if (!hasExited) child.kill('SIGTERM')
      const late = new AbortController()
      const killLate = delay(deadlineMs, undefined, { signal: late.signal }).then(
        () => signalGroup(pid, 'SIGKILL'),
        () => {},
      )
      await exited
      late.abort()
      await killLate
    },
    async kill9() {
      signalGroup(pid, 'SIGKILL')
      await exited
    },
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // The group has already ended.
  }
}

/** Limits of `untilReady`. */
export interface ReadinessLimits {
  /** Default: 60 s. */
  readyDeadlineMs?: number | undefined
  /** Ends the wait when aborted. */
  signal?: AbortSignal | undefined
}

/** Polls `isReady` until it is true. Kills the child and throws if it ends first, is aborted or takes too long. */
export async function untilReady(
  name: string,
  child: ChildProcess,
  isReady: () => Promise<boolean>,
  { readyDeadlineMs = 60_000, signal }: ReadinessLimits,
): Promise<void> {
  const until = Date.now() + readyDeadlineMs
  while (!child.hasExited && !signal?.aborted && Date.now() < until) {
    if (await isReady().catch(() => false)) return
    await delay(20)
  }
  if (child.hasExited) {
    const exit = await child.exited
    throw new Error(`${name} ended while starting (${exit.signal ?? `exit code ${exit.code}`})`)
  }
  await child.kill9()
  throw new Error(signal?.aborted ? `${name} was stopped` : `${name} was not ready after ${readyDeadlineMs / 1_000} s`)
}

/** Returns true if a GET of the address gets a response, with one of `statuses` if they are given. */
export async function answers(url: string, statuses?: number[]): Promise<boolean> {
  const response = await fetch(url, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(1_000),
    redirect: 'manual',
  })
  await response.arrayBuffer()
  return statuses === undefined || statuses.includes(response.status)
}
