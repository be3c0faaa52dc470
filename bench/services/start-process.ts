import { fileURLToPath } from 'node:url'
import { answers, type ChildProcess, startChild, untilReady } from '../../deploy/local/processes/child-process.ts'
import type { ScenarioContext } from '../support/scenario.ts'

/** The root directory of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const END_WITH_PARENT = fileURLToPath(new URL('../../deploy/local/processes/end-with-parent.mjs', import.meta.url))

/** Options of `startProcess`. */
interface BenchProcessOptions {
  /** Another checkout. Default: this one. */
  readonly cwd?: string
  /** Options of Node, such as a loader. */
  readonly nodeArgs?: readonly string[]
  /** Path of the script in the checkout. */
  readonly script: string
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Address that returns 200 when the process is ready. */
  readonly readyUrl: string
}

/** Runs a script as a child of the scenario. Writes a V8 CPU profile into `BENCH_CPU_PROF_DIR` if it is set. */
export async function startProcess(context: ScenarioContext, options: BenchProcessOptions): Promise<ChildProcess> {
  const profileDir = process.env.BENCH_CPU_PROF_DIR
  const name = options.script.replaceAll(/[/.]/g, '-')
  const profiling = profileDir
    ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`, `--cpu-prof-name=${name}.cpuprofile`]
    : []
  const lastLines: string[] = []
  const child = await startChild({
    command: process.execPath,
    args: [
      ...profiling,
      '--import',
      END_WITH_PARENT,
      ...(options.nodeArgs ?? []),
      options.script,
      ...(options.args ?? []),
    ],
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, LOG_LEVEL: 'warn', NODE_ENV: 'production', ...options.env },
    log(line) {
      lastLines.push(line)
      if (lastLines.length > 20) lastLines.shift()
    },
  })
  context.onEnd(async () => {
    if (lastLines.length > 0) context.progress(`last output of ${options.script}:\n${lastLines.join('\n')}`)
    await child.stop(5_000)
  })
  await untilReady(options.script, child, () => answers(options.readyUrl, [200]), {})
  return child
}
