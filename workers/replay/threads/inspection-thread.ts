import { inspectChunk } from '../inspect-chunk.ts'
import { serveInspections } from './serve-inspections.ts'

// Entry point of a thread that inspects chunks. It has no settings, no environment and no connection.
serveInspections(inspectChunk)
