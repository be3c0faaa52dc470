import type { Scenario, ScenarioResult, ScenarioRun } from './scenario.ts'

/** The first and only message from bench/main.ts to this process. */
export interface ScenarioOrder {
  /** URL of the scenario's module. */
  readonly module: string
  readonly quick: boolean
  readonly full: boolean
  readonly dir: string
}

/** Message from this process to bench/main.ts. */
export type ScenarioMessage =
  | { readonly kind: 'progress'; readonly text: string }
  /** A round that failed. */
  | { readonly kind: 'round-failed'; readonly text: string }
  | { readonly kind: 'result'; readonly result: ScenarioResult }
  | { readonly kind: 'failed'; readonly error: string }

/** Runs one scenario. Each has its own process, so that compiled code and memory of another do not affect it. */
const send = (message: ScenarioMessage) =>
  new Promise<void>(resolve => {
    if (process.connected) process.send?.(message, () => resolve())
    else resolve()
  })
const endSteps: (() => Promise<void> | void)[] = []
let ending: Promise<void> | undefined

async function runEndSteps(): Promise<void> {
  for (const step of endSteps.reverse()) {
    try {
      await step()
    } catch (error) {
      await send({ kind: 'progress', text: `while ending: ${error}` })
    }
  }
}

const end = () => (ending ??= runEndSteps())

async function run({ module, quick, full, dir }: ScenarioOrder): Promise<void> {
  const context: ScenarioRun = {
    quick,
    full,
    dir,
    progress: text => void send({ kind: 'progress', text }),
    failed: text => void send({ kind: 'round-failed', text }),
    onEnd: step => void endSteps.push(step),
  }
  try {
    const { scenario } = (await import(module)) as { scenario: Scenario }
    const result = await scenario.run(context)
    await end()
    await send({ kind: 'result', result })
  } catch (error) {
    await end()
    await send({ kind: 'failed', error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    process.exitCode = 1
  }
  process.exit()
}

process.once('message', (order: ScenarioOrder) => void run(order))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end().then(() => process.exit(130)))
process.once('disconnect', () => void end().then(() => process.exit(130)))
