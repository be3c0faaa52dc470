import { describe, expect, it } from 'vitest'
import { chooseOutline, type OutlinedTree } from './choose-outline.ts'

interface TestSpan {
  readonly parent?: number
  readonly name?: number
  readonly ms?: number
  readonly startMs?: number
  readonly isError?: boolean
}

function treeOf(spans: readonly TestSpan[]): OutlinedTree {
  const leads = new Set<number>()
  spans.forEach(({ isError }, span) => {
    for (let at: number | undefined = isError ? span : undefined; at !== undefined && !leads.has(at); ) {
      leads.add(at)
      at = spans[at]?.parent
    }
  })
  const indexes = spans.map((_, span) => span)
  return {
    size: spans.length,
    tops: indexes.filter(span => spans[span]?.parent === undefined),
    children: span => Uint32Array.from(indexes.filter(other => spans[other]?.parent === span)),
    isError: span => spans[span]?.isError ?? false,
    leadsToError: span => leads.has(span),
    isParentMissing: () => false,
    nameNumber: span => spans[span]?.name ?? span,
    serviceNumber: () => 0,
    startMs: span => spans[span]?.startMs ?? 0,
    durationMs: span => spans[span]?.ms ?? 1,
  }
}

function outline(spans: readonly TestSpan[], limit: number, from?: readonly number[]) {
  const tree = treeOf(spans)
  return chooseOutline(tree, from ?? tree.tops, limit)
}

describe('the outline of a trace', () => {
  it('shows siblings of one name as one, with their count, their time and the longest of them', () => {
    const calls = Array.from({ length: 500 }, (_, i) => ({ parent: 0, name: 7, ms: i === 300 ? 50 : 2 }))
    const failed = { parent: 0, name: 7, isError: true }
    expect(outline([{ ms: 2_000 }, ...calls, failed], 10)).toMatchObject([
      { span: 0, depth: 0, count: 1, hiddenChildCount: 0 },
      { span: 301, depth: 1, count: 500, totalMs: 499 * 2 + 50 },
      { span: 501, depth: 1, count: 1 },
    ])
  })

  it('prefers the paths to errors, leaves room for the critical path, and counts what it hides', () => {
    const spans = [
      { ms: 100 },
      ...Array.from({ length: 20 }, () => ({ parent: 0, ms: 90 })),
      { parent: 0, ms: 1 },
      { parent: 21, ms: 1, isError: true },
      { parent: 0, ms: 10, startMs: 95 },
    ]
    const chosen = outline(spans, 4)
    expect(chosen.map(({ span, depth }) => [span, depth])).toEqual([
      [0, 0],
      [21, 1],
      [22, 2],
      [23, 1],
    ])
    expect(chosen[0]?.hiddenChildCount).toBe(20)
    expect(chosen.filter(({ isCritical }) => isCritical).map(({ span }) => span)).toEqual([0, 23])
  })

  it('does not let errors take all the room', () => {
    const errors = Array.from({ length: 50 }, () => ({ parent: 0, isError: true }))
    const slow = { parent: 0, ms: 80 }
    const spans = [{ ms: 100 }, ...errors, slow]
    expect(outline(spans, 10).map(({ span }) => span)).toContain(51)
  })

  it('ends on cycles of parents', () => {
    expect(outline([{ parent: 1 }, { parent: 0 }], 10, [0])).toHaveLength(2)
  })

  it('begins at a span', () => {
    expect(outline([{}, { parent: 0 }, { parent: 1 }], 10, [1]).map(({ span, depth }) => [span, depth])).toEqual([
      [1, 0],
      [2, 1],
    ])
  })
})
