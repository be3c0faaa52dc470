import { fork } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ScenarioResult } from './scenario.ts'
import type { ScenarioMessage, ScenarioOrder } from './scenario-process.ts'
import { ROOT } from './start-process.ts'

const SCENARIO_PROCESS = fileURLToPath(new URL('scenario-process.ts', import.meta.url))

/** A directory on the disk of the checkout, or in `BENCH_DIR`. */
export async function makeDataDir(): Promise<string> {
  const parent = process.env.BENCH_DIR ?? join(ROOT, '.local')
  await mkdir(parent, { recursive: true })
  return mkdtemp(join(parent, 'bench-'))
}

/** Runs one scenario in a process of its own, with a directory of its own. Throws with what it failed with. */
export async function runScenario(
  module: URL,
  quick: boolean,
  progress: (text: string) => void,
  signal: AbortSignal,
): Promise<ScenarioResult> {
  const dir = await makeDataDir()
  try {
    return await new Promise((resolve, reject) => {
      const child = fork(SCENARIO_PROCESS, { cwd: ROOT, execArgv: ['--expose-gc', '--import', 'tsx'] })
      signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
      child.on('message', (message: ScenarioMessage) => {
        if (message.kind === 'progress') progress(message.text)
        else if (message.kind === 'result') resolve(message.result)
        else reject(new Error(message.error))
      })
      child.once('error', reject)
      child.once('exit', (code, by) => reject(new Error(`the scenario ended early (${by ?? code})`)))
      child.send({ module: module.href, quick, dir } satisfies ScenarioOrder)
    })
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  }
}
