import { parentPort, workerData } from 'node:worker_threads'
import { createByteCache } from '../byte-cache.ts'
import { type ParsedMap, parseMap, UnusableMap } from './parsed-map.ts'
import type { TraceAnswer, TraceQuestion, TraceThreadSettings } from './trace-messages.ts'

/**
 * Entry point of the thread that parses source maps and traces positions. A hostile map can use up the time and memory
 * of this thread and crash it, but cannot harm the worker.
 */
const { cacheBytes, mapLimitBytes } = workerData as TraceThreadSettings
const maps = createByteCache<ParsedMap>(cacheBytes)

parentPort?.on('message', (question: TraceQuestion) => parentPort?.postMessage(answer(question)))

function answer({ id, mapKey, positions, bytes }: TraceQuestion): TraceAnswer {
  try {
    const map = maps.get(mapKey) ?? (bytes && parseMap(textOf(bytes), mapLimitBytes))
    if (map === undefined) return { id, kind: 'absent' }
    const originals = positions.map(position => map.trace(position))
    // Tracing makes a map grow, and lru-cache measures a value again only after it was removed.
    maps.delete(mapKey)
    maps.set(mapKey, map)
    return { id, kind: 'traced', originals }
  } catch (error) {
    const reason = error instanceof UnusableMap ? error.message : `the map is unreadable: ${String(error)}`
    return { id, kind: 'unusable', reason: reason.slice(0, 300) }
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
