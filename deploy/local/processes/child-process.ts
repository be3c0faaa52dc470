import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** One line of what a child wrote. */
export type LineLog = (line: string) => void

export interface ChildExit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface ChildProcess {
  readonly pid: number
  /** Resolves when the child has ended and nothing of its process group is left; never rejects. */
  readonly exited: Promise<ChildExit>
  readonly hasExited: boolean
  /** Asks with SIGTERM (or as `askToEnd` does) and kills the group when it has not ended after `deadlineMs`. */
  stop(deadlineMs?: number): Promise<void>
  kill9(): Promise<void>
}

export interface ChildOptions {
  command: string
  args: string[]
  env?: Record<string, string | undefined>
  cwd?: string
  /** Written to the child's stdin, which stays open: its end tells the child that this process is gone. */
  firstInput?: string
  /** An open file to be the child's stdin instead of a pipe of ours. */
  stdinFd?: number
  /** How the child is asked to end, when not with SIGTERM. */
  askToEnd?: (stdin: Writable | null) => void
  /** When `stop` kills what has not ended. Default 3 s. */
  stopDeadlineMs?: number
  log: LineLog
}

/**
 * Starts a child in a process group of its own, so that Ctrl-C in a terminal reaches only the process that decides
 * about the order of stopping, and so that killing it takes its own children (workerd, esbuild) along.
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
    // The group is empty already.
  }
}

export interface ReadinessLimits {
  /** Default 60 s. */
  readyDeadlineMs?: number | undefined
  /** Aborted: no longer wanted. */
  signal?: AbortSignal | undefined
}

/** Polls until `isReady`. Throws, and kills the child, when it ends before, is aborted or takes too long. */
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

/** True when a GET of the address is answered at all, or with one of the given statuses. */
export async function answers(url: string, statuses?: number[]): Promise<boolean> {
  const response = await fetch(url, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(1_000),
    redirect: 'manual',
  })
  await response.arrayBuffer()
  return statuses === undefined || statuses.includes(response.status)
}
