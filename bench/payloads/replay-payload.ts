import { randomInt } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** A replay chunk. */
export interface ReplayPayload {
  readonly gzip: Buffer
  readonly jsonLinesBytes: number
  readonly events: number
}

const WORDS =
  'account address basket button cancel card checkout customer delivery discount email invoice item list name order page payment price product search select shipping status total update user view'.split(
    ' ',
  )

/** Creates a chunk as rrweb records it: a snapshot of a page, then events, of about this size when compressed. */
export function replayPayload(gzipBytes: number): ReplayPayload {
  // The compression ratio depends mostly on the kind of events, so it is measured on a part first.
  const part = makeLines(1_000_000)
  const ratio = gzipSync(part.text).length / part.text.length
  const { text, events } = makeLines(Math.round(gzipBytes / ratio))
  return { gzip: gzipSync(text), jsonLinesBytes: text.length, events }
}

function makeLines(bytes: number): { text: Buffer; events: number } {
  let timestamp = Date.now() - 60_000
  const lines = [
    JSON.stringify({ type: 4, data: { href: 'https://shop.example/', width: 1440, height: 900 }, timestamp }),
  ]
  lines.push(JSON.stringify({ type: 2, data: { node: element(6), initialOffset: { top: 0, left: 0 } }, timestamp }))
  let length = lines.reduce((sum, line) => sum + line.length + 1, 0)
  while (length < bytes) {
    timestamp += randomInt(5, 120)
    const line = JSON.stringify({ type: 3, data: incrementalData(), timestamp })
    lines.push(line)
    length += line.length + 1
  }
  return { text: Buffer.from(`${lines.join('\n')}\n`), events: lines.length }
}

/** Creates an event. Most are mouse moves, then document changes, scrolling, clicks, input. */
function incrementalData(): object {
  const kind = randomInt(100)
  if (kind < 45) return { source: 1, positions: Array.from({ length: randomInt(4, 20) }, position) }
  if (kind < 80) return mutation()
  if (kind < 88) return { source: 3, id: nodeId(), x: 0, y: randomInt(8_000) }
  if (kind < 94) return { source: 2, type: randomInt(7), id: nodeId(), x: randomInt(1_440), y: randomInt(900) }
  return { source: 5, id: nodeId(), text: words(randomInt(1, 6)), isChecked: false, userTriggered: true }
}

const position = (_: unknown, i: number) => ({
  x: randomInt(1_440),
  y: randomInt(900),
  id: nodeId(),
  timeOffset: -50 * i,
})

function mutation(): object {
  return {
    source: 0,
    texts: Array.from({ length: randomInt(3) }, () => ({ id: nodeId(), value: words(randomInt(1, 8)) })),
    attributes: Array.from({ length: randomInt(6) }, () => ({ id: nodeId(), attributes: attributes() })),
    removes: Array.from({ length: randomInt(4) }, () => ({ parentId: nodeId(), id: nodeId() })),
    adds: Array.from({ length: randomInt(5) }, () => ({ parentId: nodeId(), nextId: null, node: element(2) })),
  }
}

function element(depth: number): object {
  const children = Array.from({ length: randomInt(1, 6) }, () =>
    depth === 0 ? { type: 3, textContent: words(randomInt(1, 10)), id: nodeId() } : element(depth - 1),
  )
  return {
    type: 2,
    tagName: depth % 2 === 0 ? 'div' : 'span',
    attributes: attributes(),
    childNodes: children,
    id: nodeId(),
  }
}

function attributes(): object {
  const name = randomInt(0x1_0000_0000).toString(36)
  return {
    class: `css-${name} ${words(2)}`,
    style: `transform: translate(${randomInt(2_000)}px, ${randomInt(2_000)}px)`,
    ...(randomInt(4) === 0 ? { 'data-testid': words(2).replace(' ', '-') } : {}),
  }
}

const nodeId = () => randomInt(1, 20_000)
const words = (count: number) => Array.from({ length: count }, () => WORDS[randomInt(WORDS.length)]).join(' ')
