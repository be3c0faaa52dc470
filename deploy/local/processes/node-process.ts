import { fileURLToPath } from 'node:url'
import { ROOT } from '../config.ts'
import { answers, type ChildProcess, type LineLog, startChild, untilReady } from './child-process.ts'

/** Options of `startNodeProcess`. */
interface NodeProcessOptions {
  /** Path of the script in the checkout. */
  script: string
  env: Record<string, string | undefined>
  /** Address whose `/readyz` reports when the process is ready. */
  adminUrl: string
  log: LineLog
  signal: AbortSignal
}

const END_WITH_PARENT = fileURLToPath(new URL('end-with-parent.mjs', import.meta.url))

/** Starts one of the service's processes with this Node, and waits until its `/readyz` returns 200. */
export async function startNodeProcess(options: NodeProcessOptions): Promise<ChildProcess> {
  const child = await startChild({
    command: process.execPath,
    args: ['--import', END_WITH_PARENT, options.script],
    cwd: ROOT,
    env: options.env,
    log: options.log,
  })
  await untilReady(options.script, child, () => answers(`${options.adminUrl}/readyz`, [200]), {
    signal: options.signal,
  })
  return child
}
