import { Worker } from 'node:worker_threads'
import { MapStart } from '../../../shared/json/map-start.ts'
import { SourceMapScanner } from '../../decode/source-map-scanner.ts'
import { createByteCache } from '../byte-cache.ts'
import { indexFunctions } from './function-index.ts'
import { type ParsedMap, parseMap, type SourceIndexer, UnusableMap } from './parsed-map.ts'
import { runWithin } from './run-within.ts'
import { READY, type TraceAnswer, type TraceMessage, type TraceQuestion, type TraceSettings } from './trace-messages.ts'

/**
 * Entry point of the process that parses source maps and traces positions. A hostile map can use up the time and memory
 * of this process and end it, but cannot harm the worker. It has no settings but its argument, no environment and no
 * connection except the one to the worker.
 */
const settings: TraceSettings = JSON.parse(process.argv[2] ?? '')
const maps = createByteCache<ParsedMap>(settings.cacheBytes)

/** The map that the last question waits for. */
interface ArrivingMap {
  readonly question: TraceQuestion
  readonly bytes: Buffer
  readonly scanner: SourceMapScanner
  filled: number
}

let asked: TraceQuestion | undefined
let arriving: ArrivingMap | undefined
/** Time at which the current question stops looking for functions. */
let indexUntilMs = 0

const watch = new Worker(new URL('./end-with-parent.mjs', import.meta.url), { name: 'end with parent', env: {} })
watch.unref()

process.on('message', (message: TraceMessage) => {
  const answer = answerTo(message)
  if (answer !== undefined) process.send?.(answer)
})
// Stdin and this channel end at the same time, so the thread may not be needed.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.send?.(READY)

function answerTo(message: TraceMessage): TraceAnswer | undefined {
  const { id } = message
  try {
    switch (message.kind) {
      case 'question':
        return ask(message)
      case 'map':
        if (asked?.id === id) arriving = newArriving(asked, message.size)
        return undefined
      case 'bytes':
        return arriving?.question.id === id ? take(arriving, message.bytes) : undefined
    }
  } catch (error) {
    asked = arriving = undefined
    const reason = error instanceof UnusableMap ? error.message : `the map is unreadable: ${String(error)}`
    return { id, kind: 'unusable', reason: reason.slice(0, 300) }
  }
}

function ask(question: TraceQuestion): TraceAnswer {
  asked = arriving = undefined
  const map = maps.get(question.mapKey)
  if (map !== undefined) return trace(question, map)
  asked = question
  return { id: question.id, kind: 'absent' }
}

function newArriving(question: TraceQuestion, size: number): ArrivingMap {
  if (size === 0) throw new UnusableMap('the map is empty')
  return { question, bytes: Buffer.allocUnsafe(size), scanner: new SourceMapScanner(), filled: 0 }
}

/** Adds bytes to a map. It is parsed when all have arrived, unless its cost is over the limit before. */
function take(map: ArrivingMap, bytes: Uint8Array): TraceAnswer | undefined {
  if (map.filled + bytes.length > map.bytes.length) throw new UnusableMap('the map is larger than its object')
  map.bytes.set(bytes, map.filled)
  map.filled += bytes.length
  map.scanner.add(bytes)
  if (!map.scanner.isJson) throw new UnusableMap('the map is not JSON')
  const { costBytes } = map.scanner
  if (costBytes > settings.mapLimitBytes) throw new UnusableMap(`parsing the map would take over ${costBytes} bytes`)
  if (map.filled < map.bytes.length) return undefined
  const { question } = map
  const text = map.bytes.toString('utf8', new MapStart().skip(map.bytes))
  asked = arriving = undefined
  return trace(question, parseMap(text, settings.mapLimitBytes, indexInTime))
}

function trace({ id, mapKey, positions }: TraceQuestion, map: ParsedMap): TraceAnswer {
  indexUntilMs = performance.now() + settings.indexingLimitMs
  const originals = positions.map(position => map.trace(position))
  // Tracing makes a map grow, and lru-cache measures a value again only after it was removed.
  maps.delete(mapKey)
  maps.set(mapKey, map)
  return { id, kind: 'traced', originals }
}

/** Finds the functions of a source within the time that the question has left. */
const indexInTime: SourceIndexer = (source, path) => {
  const leftMs = indexUntilMs - performance.now()
  if (leftMs <= 0) return 'later'
  return runWithin(leftMs, () => indexFunctions(source, path))?.result
}
