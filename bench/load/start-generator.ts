import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { GeneratorMessage, LoadPlan, LoadResult } from './plan.ts'

/** A running load generator. */
export interface LoadGenerator {
  readonly pid: number
  /** Runs one load. Calls `onWindow` at the start and end of the measured window. */
  run(plan: LoadPlan, onWindow?: (edge: 'begin' | 'end') => void): Promise<LoadResult>
  stop(): Promise<void>
}

const GENERATOR = fileURLToPath(new URL('generator.ts', import.meta.url))

/** Starts a load generator as a child process that ends with this process. */
export async function startGenerator(): Promise<LoadGenerator> {
  const child = fork(GENERATOR, { execArgv: [] })
  await message(child, 'ready')
  return {
    pid: child.pid as number,
    async run(plan, onWindow) {
      const watch = (sent: GeneratorMessage) => {
        if (sent.kind === 'begin' || sent.kind === 'end') onWindow?.(sent.kind)
      }
      child.on('message', watch)
      try {
        child.send(plan)
        const done = await message(child, 'done')
        return done.result
      } finally {
        child.off('message', watch)
      }
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

function message<K extends GeneratorMessage['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<GeneratorMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      child.off('message', onMessage)
      child.off('exit', onExit)
      finish()
    }
    const onMessage = (sent: GeneratorMessage) => {
      if (sent.kind === kind) settle(() => resolve(sent as Extract<GeneratorMessage, { kind: K }>))
      else if (sent.kind === 'failed') settle(() => reject(new Error(`the load generator failed: ${sent.error}`)))
    }
    const onExit = () => settle(() => reject(new Error('the load generator ended')))
    child.on('message', onMessage)
    child.on('exit', onExit)
  })
}
