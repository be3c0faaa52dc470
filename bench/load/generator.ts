import type { GeneratorMessage, LoadPlan } from './plan.ts'
import { buildBodies } from './requests.ts'
import { runLoad } from './run-load.ts'

/** Runs load plans that arrive as messages. A separate process, so that its CPU time is not counted as the server's. */
const pools = new Map<string, Buffer[]>()

function bodiesOf(plan: LoadPlan): Buffer[] {
  const key = JSON.stringify(plan.payload)
  let bodies = pools.get(key)
  if (bodies === undefined) {
    bodies = buildBodies(plan.payload)
    pools.set(key, bodies)
  }
  return bodies
}

const tell = (message: GeneratorMessage) => void process.send?.(message)

process.on('message', (plan: LoadPlan) => {
  runLoad(plan, bodiesOf(plan), kind => tell({ kind })).then(
    result => tell({ kind: 'done', result }),
    error => tell({ kind: 'failed', error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
tell({ kind: 'ready' })
