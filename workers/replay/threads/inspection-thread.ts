import { inspectChunk } from '../inspect-chunk.ts'
import { QuickInspector } from '../simd/quick-inspector.ts'
import { serveInspections } from './serve-inspections.ts'

/** Entry point of a thread that inspects chunks. It has no settings, no environment and no connection. */
const quick = new QuickInspector()
serveInspections(async (body, encoding) => quick.inspect(body, encoding) ?? inspectChunk(body, encoding))
