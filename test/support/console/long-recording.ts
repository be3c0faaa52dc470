import {
  incremental,
  mutation,
  PageBuilder,
  type StagedChunk,
  type StagedEvent,
  snapshotEvents,
} from './staged-recording.ts'

const WINDOWS = 3
const CHUNK_S = 30
/** Chunks from one full snapshot to the next: five minutes. */
const CHUNKS_A_SNAPSHOT = 10
const ROWS = 1_200
const CELLS = 'lorem ipsum dolor sit amet consetetur'

/** Name of the window in whose turn a second is. Turns are minutes. */
export const windowOf = (second: number) => `tab-${(Math.floor(second / 60) % WINDOWS) + 1}`

/**
 * Returns a recording of three windows that are open at once. Each shows a table of which a row changes every second, and is used
 * in turns. An hour has 25 MB of events.
 */
export function* longRecording(startMs: number, seconds: number): Generator<StagedChunk> {
  for (let w = 1; w <= WINDOWS; w++) {
    const windowId = `tab-${w}`
    const b = new PageBuilder()
    const mark = b.text('second 0')
    const texts = Array.from({ length: ROWS }, (_, row) => b.text(`row ${row}`))
    const rows = texts.map((text, row) =>
      b.element('tr', { class: `row row-${row % 7}` }, [
        b.element('td', {}, [text]),
        b.element('td', {}, [b.text(CELLS)]),
      ]),
    )
    const page = b.page([], [b.element('p', {}, [mark]), b.element('table', {}, rows)])
    for (let from = 0; from < seconds; from += CHUNK_S) {
      const segmentId = from / CHUNK_S
      const events: StagedEvent[] = []
      for (let second = from; second < from + CHUNK_S; second++) {
        const at = startMs + second * 1_000
        if (second === from && segmentId % CHUNKS_A_SNAPSHOT === 0) events.push(...snapshotEvents(at, page))
        const changed = Array.from({ length: 6 }, (_, i) => texts[(second * 6 + i) % ROWS]?.id)
        const values = changed.map((id, i) => ({ id, value: `row of second ${second}, ${i}: ${CELLS.repeat(3)}` }))
        events.push(mutation(at, { texts: [{ id: mark.id, value: `second ${second} of ${windowId}` }, ...values] }))
        if (windowOf(second) !== windowId) continue
        const positions = Array.from({ length: 10 }, (_, i) => ({
          x: 100 + i * 9,
          y: 200,
          id: 1,
          timeOffset: (i - 9) * 50,
        }))
        events.push(incremental(at + 500, 1, { positions }))
      }
      yield { windowId, segmentId, events }
    }
  }
}
