import { createContext, Script } from 'node:vm'

const sandbox = { work: (): unknown => undefined }
createContext(sandbox)
const script = new Script('work()')

/**
 * Runs synchronous work and interrupts it after `limitMs`. Returns undefined if it was interrupted. The work must not
 * change anything that is used afterwards, because it may end at any point. Throws what the work throws.
 */
export function runWithin<T>(limitMs: number, work: () => T): { readonly result: T } | undefined {
  sandbox.work = work
  try {
    return { result: script.runInContext(sandbox, { timeout: Math.max(1, Math.ceil(limitMs)) }) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  } finally {
    sandbox.work = () => undefined
  }
}
