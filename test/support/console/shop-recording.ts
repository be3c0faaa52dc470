import { HOUR_MS } from '../../../schemas/units.ts'
import {
  incremental,
  mutation,
  PageBuilder,
  type StagedChunk,
  type StagedEvent,
  snapshotEvents,
} from './staged-recording.ts'

const STYLE = `
body { margin: 0; font: 16px system-ui, sans-serif; color: #1d2733; background: #f6f8fa }
header { background: #17324d; color: #fff; padding: 16px 32px; font-size: 20px }
main { display: grid; grid-template-columns: repeat(3, 1fr); gap: 20px; padding: 32px }
.card { background: #fff; border-radius: 10px; padding: 20px; box-shadow: 0 1px 4px #0003 }
.card b { display: block; font-size: 34px; margin-bottom: 8px; color: #0a6187 }
p { padding: 0 32px }`

/** A page whose text states the second of the recording that it shows: `second 12 of tab-1`. */
class ShopPage {
  readonly #builder = new PageBuilder()
  readonly #windowId: string
  readonly #node
  readonly #secondId: number

  constructor(windowId: string) {
    const b = this.#builder
    this.#windowId = windowId
    const second = b.text(this.#text(0))
    this.#secondId = second.id as number
    const cards = ['Pen', 'Book', 'Lamp', 'Ruler', 'Paper', 'Ink'].map((name, i) =>
      b.element('div', { class: 'card' }, [b.element('b', {}, [b.text(name)]), b.text(`${i + 2}.50 € · in stock`)]),
    )
    this.#node = b.page(
      [b.element('style', {}, [b.text(STYLE, { isStyle: true })])],
      [
        b.element('header', {}, [b.text(`Stationery — ${windowId}`)]),
        b.element('main', {}, cards),
        b.element('p', {}, [second]),
      ],
    )
  }

  #text(second: number): string {
    return `second ${second} of ${this.#windowId}`
  }

  snapshot(at: number, second: number): StagedEvent[] {
    const node = JSON.parse(JSON.stringify(this.#node).replace(this.#text(0), this.#text(second)))
    return snapshotEvents(at, node)
  }

  /** Events of seconds, at each of which the text changes and the pointer moves. */
  seconds(startMs: number, from: number, to: number, { isActive = true } = {}): StagedEvent[] {
    return Array.from({ length: to - from }, (_, i) => from + i).flatMap(second => {
      const at = startMs + second * 1_000
      const moves = Array.from({ length: 5 }, (_, step) => ({
        x: 120 + ((second * 90 + step * 18) % 760),
        y: 140 + ((second * 40 + step * 8) % 260),
        id: 1,
        timeOffset: (step - 4) * 50,
      }))
      return [
        mutation(at, { texts: [{ id: this.#secondId, value: this.#text(second) }] }),
        ...(isActive ? [incremental(at + 250, 1, { positions: moves })] : []),
      ]
    })
  }
}

/** When the second part of `tab-2` begins, in ms after the recording. */
export const NEXT_DAY_MS = 35 * HOUR_MS

/** Returns a recording with two windows, a loss, a window without its first snapshot, an idle time, and a gap of 35 hours. */
export function shopRecording(startMs: number): StagedChunk[] {
  const [a, b] = [new ShopPage('tab-1'), new ShopPage('tab-2')]
  const seconds = (page: ShopPage, from: number, to: number, isActive = true) =>
    page.seconds(startMs, from, to, { isActive })
  const line = (second: number, level: string, text: string): StagedEvent => ({
    type: 6,
    timestamp: startMs + second * 1_000,
    data: { plugin: 'rrweb/console@1', payload: { level, trace: [], payload: [JSON.stringify(text)] } },
  })
  const request = (second: number, name: string, status: number): StagedEvent => ({
    type: 6,
    timestamp: startMs + second * 1_000,
    data: { plugin: 'rrweb/network@1', payload: { requests: [{ method: 'POST', name, status }] } },
  })
  const chunk = (windowId: string, segmentId: number, events: readonly StagedEvent[]) => ({
    windowId,
    segmentId,
    events: [...events].sort((one, other) => one.timestamp - other.timestamp),
  })
  return [
    chunk('tab-1', 0, [
      ...a.snapshot(startMs, 0),
      ...seconds(a, 1, 20),
      line(3, 'log', 'cart restored'),
      request(7, 'https://shop.example/api/cart', 200),
    ]),
    chunk('tab-1', 1, [
      ...seconds(a, 20, 40),
      line(31, 'error', 'no price of "pen"'),
      request(31, 'https://shop.example/api/orders', 500),
    ]),
    // The third never arrives.
    chunk('tab-1', 3, seconds(a, 60, 80)),
    chunk('tab-1', 4, [...a.snapshot(startMs + 80_000, 80), ...seconds(a, 81, 100)]),
    // The user reads.
    chunk('tab-1', 5, seconds(a, 100, 160, false)),
    chunk('tab-1', 6, seconds(a, 160, 180)),
    chunk('tab-2', 1, seconds(b, 185, 195)),
    chunk('tab-2', 2, [...b.snapshot(startMs + 195_000, 195), ...seconds(b, 196, 210)]),
    chunk('tab-2', 3, seconds(b, NEXT_DAY_MS / 1_000, NEXT_DAY_MS / 1_000 + 20)),
  ]
}
