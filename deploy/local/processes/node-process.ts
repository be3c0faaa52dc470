import { fileURLToPath } from 'node:url'
import { ROOT } from '../config.ts'
import { answers, type ChildProcess, type LineLog, startChild, untilReady } from './child-process.ts'

export interface NodeProcessOptions {
  /** Path of its main.ts in the checkout. */
  script: string
  env: Record<string, string | undefined>
  /** `/readyz` of this address tells when it is ready. */
  adminUrl: string
  log: LineLog
  signal: AbortSignal
}

const END_WITH_PARENT = fileURLToPath(new URL('end-with-parent.mjs', import.meta.url))

/** Runs one of the service's own processes with this Node, until its `/readyz` says 200. */
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
