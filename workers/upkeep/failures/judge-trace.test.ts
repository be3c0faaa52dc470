import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { judgeTrace, type SpanParents, type TraceRow } from './judge-trace.ts'

const NO_SPAN = '0'.repeat(16)

/** What a client sends: an exception, or that a span failed. */
interface Sent {
  readonly spanId: string
  readonly findingId: string
  readonly isFailure: boolean
  /** Equal rows have the same. */
  readonly nonce: number
}

/** Rows as they are stored, and judged in any portions. */
class Store {
  readonly #rows = new Map<string, TraceRow & { sent: Sent }>()

  arrive(sent: Sent): void {
    const key = JSON.stringify(sent)
    const { stored = 0, twins = 0 } = this.#rows.get(key) ?? {}
    const row = { key, ...sent, sent, stored: stored + (sent.isFailure ? 0 : 1), twins }
    if (!sent.isFailure || !this.#rows.has(key)) this.#rows.set(key, row)
  }

  judge(parents: SpanParents): void {
    const { kept, changes } = judgeTrace([...this.#rows.values()], parents)
    for (const row of kept) this.#rows.set(row.key, { ...row, stored: 1 })
    for (const { row, change } of changes) this.#rows.set(row.key, { ...row, twins: row.twins + change })
  }

  /** Counts what is left of each finding on each span. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { spanId, findingId, isFailure, stored, twins } of this.#rows.values()) {
      expect(twins).toBeGreaterThanOrEqual(0)
      expect(twins).toBeLessThanOrEqual(stored)
      const key = isFailure ? spanId : `${spanId} ${findingId}`
      if (stored > twins) counts[key] = (counts[key] ?? 0) + stored - twins
    }
    return counts
  }
}

function countsOf(sent: readonly Sent[], parents: SpanParents = new Map()): Record<string, number> {
  const store = new Store()
  for (const one of sent) store.arrive(one)
  store.judge(parents)
  return store.counts()
}

const exception = (spanId: string, findingId = 'E', nonce = 0): Sent => ({ spanId, findingId, isFailure: false, nonce })
const failure = (spanId: string, findingId = 'POST', nonce = 0): Sent => ({ spanId, findingId, isFailure: true, nonce })
/** a → b → c, and d beside b. */
const TREE = new Map([
  ['b', 'a'],
  ['c', 'b'],
  ['d', 'a'],
])

describe('the occurrences of a trace', () => {
  it.each<[string, Sent[], Record<string, number>]>([
    ['a span and its log record', [exception('c'), exception('c', 'E', 1)], { 'c E': 1 }],
    ['equal rows', [exception('c'), exception('c')], { 'c E': 1 }],
    ['ancestors', [exception('a'), exception('b'), exception('c')], { 'c E': 1 }],
    ['siblings', [exception('b'), exception('d'), exception('a')], { 'b E': 1, 'd E': 1 }],
    ['different findings', [exception('a', 'F'), exception('b')], { 'a F': 1, 'b E': 1 }],
    ['a failed span above an exception of any finding', [failure('a'), exception('c')], { 'c E': 1 }],
    ['a failed span with the exception of a log record', [failure('c'), exception('c')], { 'c E': 1 }],
    ['failed spans above each other', [failure('a'), failure('b')], { b: 1 }],
    ['a failed span beside an exception', [failure('d'), exception('b')], { d: 1, 'b E': 1 }],
    ['a failed span below an exception', [failure('c'), exception('b')], { c: 1, 'b E': 1 }],
    ['a failed span that was sent twice', [failure('c'), failure('c', 'POST', 1)], { c: 1 }],
    [
      'records without a span',
      [exception(NO_SPAN), exception(NO_SPAN, 'E', 1), failure('a')],
      { [`${NO_SPAN} E`]: 2, a: 1 },
    ],
  ])('are counted once: %s', (_, sent, counts) => expect(countsOf(sent, TREE)).toEqual(counts))

  it('are taken over by a later exception, and by a later failed span below', () => {
    const store = new Store()
    store.arrive(failure('a'))
    store.judge(TREE)
    expect(store.counts()).toEqual({ a: 1 })
    store.arrive(failure('b'))
    store.judge(TREE)
    expect(store.counts()).toEqual({ b: 1 })
    store.arrive(exception('c'))
    store.judge(TREE)
    expect(store.counts()).toEqual({ 'c E': 1 })
  })

  it('count again when what they were twins of has become another finding', () => {
    const [above, below] = [
      { ...exception('a'), key: 'a', stored: 1, twins: 1 },
      { ...exception('b', 'F'), key: 'b', stored: 1, twins: 0 },
    ]
    expect(judgeTrace([above, below], TREE)).toEqual({ kept: [], changes: [{ row: above, change: -1 }] })
  })

  it('are judged in linear time on a chain that is long', () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `s${i}`)
    const parents = new Map(names.slice(1).map((name, i) => [name, names[i] as string]))
    expect(
      countsOf(
        names.flatMap(name => [exception(name), failure(name)]),
        parents,
      ),
    ).toEqual({ 's9999 E': 1 })
  })
})

const SPANS = ['a', 'b', 'c', 'd', 'e', 'f']
const span = fc.constantFrom(...SPANS)
const anySent: fc.Arbitrary<Sent> = fc.record({
  spanId: fc.oneof({ weight: 9, arbitrary: span }, fc.constant(NO_SPAN)),
  findingId: fc.constantFrom('E', 'F'),
  isFailure: fc.boolean(),
  nonce: fc.nat(1),
})
/** Failures belong to spans. */
const sentOnce = anySent.map(sent => (sent.isFailure && sent.spanId === NO_SPAN ? { ...sent, isFailure: false } : sent))
/** Any parents: cycles, spans that were not sent, and spans that are their own parent are among them. */
const anyParents = fc
  .array(fc.tuple(span, fc.oneof(span, fc.constant('lost'))), { maxLength: 8 })
  .map(pairs => new Map(pairs))
/** Parents without cycles: of an earlier span. */
const treeParents = fc
  .tuple(...SPANS.slice(1).map((_, i) => fc.nat(i + 1)))
  .map(
    choices =>
      new Map(choices.flatMap((at, i) => (at > i ? [] : [[SPANS[i + 1] as string, SPANS[at] as string] as const]))),
  )

/** Counts by the words of the documentation, without any order or state. */
function expected(sent: readonly Sent[], parents: SpanParents): Record<string, number> {
  const isBelow = (spanId: string, above: string): boolean => {
    const parent = parents.get(spanId)
    return parent !== undefined && (parent === above || isBelow(parent, above))
  }
  const counts: Record<string, number> = {}
  for (const { spanId, findingId, isFailure } of sent) {
    const others = sent.filter(other => other.spanId !== NO_SPAN)
    if (isFailure) {
      const isExplained = others.some(
        other => isBelow(other.spanId, spanId) || (!other.isFailure && other.spanId === spanId),
      )
      if (!isExplained) counts[spanId] = 1
    } else if (spanId === NO_SPAN) {
      counts[`${spanId} ${findingId}`] = (counts[`${spanId} ${findingId}`] ?? 0) + 1
    } else if (
      !others.some(other => !other.isFailure && other.findingId === findingId && isBelow(other.spanId, spanId))
    ) {
      counts[`${spanId} ${findingId}`] = 1
    }
  }
  return counts
}

/** Rows in some order, each with whether the trace is judged after it. */
const arrivals = fc.array(sentOnce, { minLength: 1, maxLength: 12 }).chain(sent =>
  fc.tuple(
    fc.constant(sent),
    fc.shuffledSubarray(
      sent.map((_, i) => i),
      { minLength: sent.length },
    ),
    fc.array(fc.boolean(), { minLength: sent.length, maxLength: sent.length }),
  ),
)

it('gives the same counts in any order of arrival, in any windows, as the words say', () => {
  fc.assert(
    fc.property(arrivals, treeParents, fc.array(span), ([sent, order, isJudged], parents, late) => {
      const store = new Store()
      const early = new Map([...parents].filter(([spanId]) => !late.includes(spanId)))
      for (const [i, at] of order.entries()) {
        store.arrive(sent[at] as Sent)
        // Some spans arrive after the rows.
        if (isJudged[i]) store.judge(early)
      }
      store.judge(parents)
      const counts = store.counts()
      expect(counts).toEqual(expected(sent, parents))
      store.judge(parents)
      expect(store.counts()).toEqual(counts)
    }),
    { numRuns: 2_000 },
  )
})

it('counts each finding that has a span at least once, whatever the parents are', () => {
  fc.assert(
    fc.property(arrivals, anyParents, ([sent, order, isJudged], parents) => {
      const store = new Store()
      for (const [i, at] of order.entries()) {
        store.arrive(sent[at] as Sent)
        if (isJudged[i]) store.judge(parents)
      }
      store.judge(parents)
      expect(store.counts()).toEqual(countsOf(sent, parents))
      const found = new Set(Object.keys(store.counts()).map(key => key.split(' ')[1]))
      for (const { isFailure, findingId } of sent) if (!isFailure) expect(found).toContain(findingId)
      expect(Object.keys(store.counts())).not.toEqual([])
    }),
    { numRuns: 2_000 },
  )
})
