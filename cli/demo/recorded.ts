import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

/** An event of rrweb. */
interface RecordedEvent {
  readonly type: number
  readonly timestamp: number
  readonly data: unknown
}

/** An exception as Chromium had it, with the address of the minified script in its stack. */
export interface RecordedFailure {
  readonly type: string
  readonly message: string
  readonly stack: string
}

/** A build of the shop: the path of its minified script, and the text of its source map. */
export interface RecordedRelease {
  readonly version: string
  readonly script: string
  readonly map: string
}

/** Content of `recorded.json.gz`, which `npm run generate:shop` makes with esbuild, @penstock/browser and Chromium. */
export interface Recorded {
  readonly releases: readonly RecordedRelease[]
  /** The checkout that fails in 2.4.0. */
  readonly checkout: RecordedFailure
  /** When it fails, in ms after the first event. */
  readonly checkoutMs: number
  /** The coupon that cannot be read, by release. */
  readonly coupon: Readonly<Record<string, RecordedFailure>>
  /** The visit in which the checkout fails. Times are ms after the first event. */
  readonly events: readonly RecordedEvent[]
}

/** A chunk of a recording, as an SDK uploads it. */
interface RecordedChunk {
  readonly windowId: string
  readonly segmentId: number
  readonly events: readonly RecordedEvent[]
}

const FILE = new URL('recorded.json.gz', import.meta.url)
/** An SDK uploads what it has recorded in this time. */
const CHUNK_MS = 5_000

/** Reads what a real browser has recorded of the shop. */
export function loadRecorded(): Recorded {
  return JSON.parse(gunzipSync(readFileSync(FILE)).toString())
}

/** Returns the recording of the visit in chunks, as if it had begun at this time. */
export function recordedVisit({ events }: Pick<Recorded, 'events'>, startMs: number): RecordedChunk[] {
  const byChunk = Map.groupBy(events, ({ timestamp }) => Math.floor(timestamp / CHUNK_MS))
  return [...byChunk.values()].map((chunk, segmentId) => ({
    windowId: 'window-1',
    segmentId,
    events: chunk.map(event => ({ ...event, timestamp: startMs + event.timestamp })),
  }))
}
