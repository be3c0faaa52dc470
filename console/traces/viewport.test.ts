import { describe, expect, it } from 'vitest'
import { ROW_HEIGHT, scrollTo, viewportOf } from './viewport.ts'

const VIEW = 600

describe.each([10, 1_000, 1_000_000, 5_000_000])('the rows in view of %i', count => {
  const { contentHeight } = viewportOf(count, 0, VIEW)
  const scrollEnd = Math.max(0, contentHeight - VIEW)

  it('begin with the first row and end with the last', () => {
    expect(viewportOf(count, 0, VIEW).first).toBe(0)
    const last = viewportOf(count, scrollEnd, VIEW)
    expect(last.end).toBe(count)
    expect(last.topOf(count - 1) + ROW_HEIGHT).toBeCloseTo(contentHeight, 2)
  })

  it('are within a height that every browser can place', () => {
    expect(contentHeight).toBeLessThanOrEqual(15_000_000)
  })

  it('have the row that was scrolled to', () => {
    for (const row of [0, 3, count >> 1, count - 1]) {
      for (const align of ['nearest', 'center'] as const) {
        const top = Math.min(scrollTo(row, count, scrollEnd / 3, VIEW, align), scrollEnd)
        const view = viewportOf(count, top, VIEW)
        const inView = view.topOf(row) - top
        expect(inView).toBeGreaterThan(-0.1)
        expect(inView + ROW_HEIGHT).toBeLessThan(VIEW + 0.1)
        expect(row >= view.first && row < view.end).toBe(true)
      }
    }
  })
})
