import { fork } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MINUTE_MS } from '../../schemas/units.ts'
import { ROOT } from '../services/start-process.ts'
import type { ScenarioResult } from './scenario.ts'
import type { ScenarioMessage, ScenarioOrder } from './scenario-process.ts'

const SCENARIO_PROCESS = fileURLToPath(new URL('scenario-process.ts', import.meta.url))

/** Creates a directory on the disk of the checkout, or in `BENCH_DIR`. */
export async function makeDataDir(): Promise<string> {
  const parent = process.env.BENCH_DIR ?? join(ROOT, '.local')
  await mkdir(parent, { recursive: true })
  return mkdtemp(join(parent, 'bench-'))
}

/** Time limit of a scenario, longer than any complete run. With `full` a load alone takes twenty minutes. */
const deadlineMs = ({ full }: RunLength) => (full ? 360 : 90) * MINUTE_MS
/** Time limit for the end steps of a scenario. */
const END_DEADLINE_MS = 30_000

/** How long a scenario measures. */
export type RunLength = Pick<ScenarioOrder, 'quick' | 'full'>

/** The result of a scenario, and its rounds that failed. */
export interface ScenarioOutcome extends ScenarioResult {
  readonly failures: readonly string[]
}

/**
 * Runs one scenario in a separate process with its own directory. Rejects with the scenario's error, or when `signal` or
 * the deadline ended it.
 */
export async function runScenario(
  module: URL,
  length: RunLength,
  progress: (text: string) => void,
  signal: AbortSignal,
): Promise<ScenarioOutcome> {
  const dir = await makeDataDir()
  try {
    return await runInChild({ ...length, module: module.href, dir }, progress, signal)
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  }
}

function runInChild(
  order: ScenarioOrder,
  progress: (text: string) => void,
  signal: AbortSignal,
): Promise<ScenarioOutcome> {
  const child = fork(SCENARIO_PROCESS, { cwd: ROOT, execArgv: ['--expose-gc'] })
  let killer: NodeJS.Timeout | undefined
  const end = () => {
    child.kill('SIGTERM')
    killer ??= setTimeout(() => child.kill('SIGKILL'), END_DEADLINE_MS)
  }
  const deadline = setTimeout(() => {
    progress(`not done after ${deadlineMs(order) / MINUTE_MS} minutes: stopping it`)
    end()
  }, deadlineMs(order))
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  return new Promise<ScenarioOutcome>((resolve, reject) => {
    let outcome: ScenarioMessage | undefined
    const failures: string[] = []
    child.on('message', (message: ScenarioMessage) => {
      if (message.kind === 'progress') progress(message.text)
      else if (message.kind === 'round-failed') {
        failures.push(message.text)
        progress(`FAILED: ${message.text}`)
      } else outcome = message
    })
    child.once('error', reject)
    // Not 'exit', which can come before the last message.
    child.once('close', (code, by) => {
      if (outcome?.kind === 'result') resolve({ ...outcome.result, failures })
      else reject(new Error(outcome?.kind === 'failed' ? outcome.error : `the scenario ended early (${by ?? code})`))
    })
    child.send(order)
  }).finally(() => {
    clearTimeout(deadline)
    clearTimeout(killer)
    signal.removeEventListener('abort', end)
  })
}
