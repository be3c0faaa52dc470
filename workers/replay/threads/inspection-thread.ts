import { describeError } from '../../../shared/runtime/errors.ts'
import { type Inspected, type Inspector, inspectChunk } from '../inspect-chunk.ts'
import { QuickInspector } from '../simd/quick-inspector.ts'
import { reportUnproven, serveInspections } from './serve-inspections.ts'

/**
 * Entry point of a thread that inspects chunks. It has no settings, no environment and no connection. If its WebAssembly cannot be
 * compiled, or fails once, the tokenizer alone inspects its chunks: the thread finds the same, but takes longer.
 */
let quick: QuickInspector | undefined
quick = attempt(() => new QuickInspector())

serveInspections(async (body, encoding) => prove(body, encoding) ?? inspectChunk(body, encoding))

function prove(...chunk: Parameters<Inspector>): Inspected | undefined {
  return attempt(() => quick?.inspect(...chunk))
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    quick = undefined
    reportUnproven(describeError(error))
    return undefined
  }
}
