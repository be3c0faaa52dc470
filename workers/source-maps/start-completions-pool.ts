import type { Pool } from '../pool.ts'
import type { PoolsDeps } from '../pools.ts'

export function startCompletionsPool(_deps: PoolsDeps): Pool {
  return { queue: 'completions', activeJobs: 0, lastProgressAt: Date.now(), close: async () => {} }
}
