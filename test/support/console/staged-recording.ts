import { gzipSync } from 'node:zlib'
import { encodeReplayMetadata } from '../clients/encode-replay-metadata.ts'

/** An event of rrweb. */
export interface StagedEvent {
  readonly type: number
  readonly timestamp: number
  readonly data: unknown
}

/** A line of a recording that is too deep to be written from an object. */
export class RawLine {
  readonly line: string

  constructor(line: string) {
    this.line = line
  }
}

/** A node of a recorded page. */
export type StagedNode = Readonly<Record<string, unknown>>

const FULL_SNAPSHOT = 2
const INCREMENTAL = 3
const META = 4
/** The end of the year 9999. */
const LAST_MS = 253_402_300_799_999

/** Creates nodes, each with the next id. */
export class PageBuilder {
  #lastId = 0

  text(textContent: string, more: object = {}): StagedNode {
    return { type: 3, textContent, id: ++this.#lastId, ...more }
  }

  element(
    tagName: string,
    attributes: object = {},
    childNodes: readonly StagedNode[] = [],
    more: object = {},
  ): StagedNode {
    return { type: 2, tagName, attributes, childNodes, id: ++this.#lastId, ...more }
  }

  /** Returns a document with these children of its head and its body. */
  page(head: readonly StagedNode[], body: readonly StagedNode[]): StagedNode {
    const html = this.element('html', { lang: 'en' }, [this.element('head', {}, head), this.element('body', {}, body)])
    return {
      type: 0,
      childNodes: [{ type: 1, name: 'html', publicId: '', systemId: '', id: ++this.#lastId }, html],
      id: ++this.#lastId,
    }
  }
}

/** Returns the events with which a recording begins: size of the page, and its full snapshot. */
export function snapshotEvents(at: number, node: StagedNode, size = { width: 1_024, height: 640 }): StagedEvent[] {
  return [
    { type: META, timestamp: at, data: { href: 'https://shop.example/cart', ...size } },
    { type: FULL_SNAPSHOT, timestamp: at, data: { node, initialOffset: { top: 0, left: 0 } } },
  ]
}

/** Returns an incremental event. */
export function incremental(at: number, source: number, data: object): StagedEvent {
  return { type: INCREMENTAL, timestamp: at, data: { source, ...data } }
}

/** Returns a mutation of the page. */
export function mutation(at: number, changes: object): StagedEvent {
  return incremental(at, 0, { adds: [], removes: [], texts: [], attributes: [], ...changes })
}

/** A chunk of a recording. */
export interface StagedChunk {
  readonly windowId: string
  readonly segmentId: number
  readonly events: readonly StagedEvent[]
}

/** Uploads a chunk, which must be accepted. */
export async function uploadChunk(
  access: { readonly baseUrl: string; readonly publicKey: string },
  sessionId: string,
  { windowId, segmentId, events }: StagedChunk,
): Promise<void> {
  // Hostile recordings have lines that are no events, and times that the service refuses.
  const times = events.map(event => event?.timestamp).filter(time => Number.isFinite(time) && time < LAST_MS)
  const isActivity = (event: StagedEvent) =>
    event?.type === INCREMENTAL && [1, 2, 5].includes((event.data as { source: number } | undefined)?.source ?? -1)
  const response = await fetch(`${access.baseUrl}/v3/replay/upload/${encodeURIComponent(sessionId)}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      'content-encoding': 'gzip',
      'x-service-public-key': access.publicKey,
      'x-replay-metadata': encodeReplayMetadata({
        windowId,
        segmentId,
        firstTs: times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
        lastTs: times.reduce((a, b) => Math.max(a, b), 0),
        eventCount: events.length,
        hasFullSnapshot: events.some(event => event?.type === FULL_SNAPSHOT),
        activityCount: events.filter(isActivity).length,
      }),
    },
    body: gzipSync(events.map(event => `${event instanceof RawLine ? event.line : JSON.stringify(event)}\n`).join('')),
  })
  if (response.status !== 200) throw new Error(`the chunk was refused: ${response.status} ${await response.text()}`)
}
