import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { until } from '../../test/support/until.ts'
import { KnownFindings, type KnownFindingsDeps, type Membership } from './known-findings.ts'

const variant = (n: number) => n.toString(16).padStart(32, '0')
const finding = (letter: string) => `fnd_${letter.repeat(26)}`
const variants = (...numbers: number[]) => new Map(numbers.map(n => [variant(n), 'ws_1']))

function request(n: number): PayloadFrame {
  const frame = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1, attributes: '' }
  const body = Buffer.from(JSON.stringify({ kind: 'stack', variantId: variant(n), stacktrace: '' }))
  return { ...frame, contentType: 'application/json', contentEncoding: 'identity', body }
}

/** Known findings over stored memberships and source maps, both by variant. */
function create(overrides: Partial<KnownFindingsDeps> = {}) {
  const stored = new Map<string, Membership>()
  const mapped = new Map<string, Membership>()
  const asked: (readonly string[])[] = []
  const resolved: string[][] = []
  const known = new KnownFindings({
    logger: pino({ level: 'silent' }),
    deadlineMs: 10_000,
    async selectMemberships({ variantIds }) {
      asked.push(variantIds)
      return [...stored].filter(([id]) => variantIds.includes(id)).map(([variantId, held]) => ({ variantId, ...held }))
    },
    async resolve(stacks, _, onMove) {
      resolved.push(stacks.map(({ variantId }) => variantId))
      for (const { variantId } of stacks) {
        const move = mapped.get(variantId)
        if (move) onMove({ variantId, ...move })
      }
    },
    ...overrides,
  })
  return { known, stored, mapped, asked, resolved }
}

describe('the findings of variants', () => {
  it('are those that are stored, else those that source maps decide on', async () => {
    const { known, stored, mapped, resolved } = create()
    stored.set(variant(1), { findingId: finding('a'), rank: 5n })
    stored.set(variant(2), { findingId: finding('b'), rank: 0n })
    mapped.set(variant(3), { findingId: finding('c'), rank: 7n })
    const found = await known.of(variants(1, 2, 3, 4), [1, 2, 3].map(request))
    expect(Object.fromEntries(found)).toEqual({
      [variant(1)]: { findingId: finding('a'), rank: 5n },
      [variant(3)]: { findingId: finding('c'), rank: 7n },
    })
    expect(resolved).toEqual([[variant(3)]])
  })

  it('are looked up once in five minutes, together with those that are new', async () => {
    let nowMs = 0
    const { known, stored, asked } = create({ now: () => nowMs })
    stored.set(variant(1), { findingId: finding('a'), rank: 5n })
    await known.of(variants(1, 2), [])
    await known.of(variants(1, 2), [])
    expect(asked).toEqual([[variant(1), variant(2)]])
    await known.of(variants(1, 2, 3), [])
    expect(asked.slice(1)).toEqual([[variant(3)]])
    stored.set(variant(2), { findingId: finding('b'), rank: 6n })
    expect([...(await known.of(variants(1, 2), [])).keys()]).toEqual([variant(1)])
    nowMs = 5 * 60_000
    expect([...(await known.of(variants(1, 2), [])).keys()]).toEqual([variant(1), variant(2)])
    expect(asked.slice(2)).toEqual([[variant(1), variant(2)]])
  })

  it('are bounded in number, in one query and in memory', async () => {
    const { known, asked } = create()
    const many = (from: number) => variants(...Array.from({ length: 2_500 }, (_, i) => from + i))
    await known.of(many(0), [])
    await known.of(many(0), [])
    expect(asked.map(ids => ids.length)).toEqual([2_000, 500])
    for (let i = 1; i <= 23; i++) await known.of(many(i * 10_000), [])
    asked.length = 0
    await known.of(variants(0), [])
    expect(asked).toEqual([])
    await known.of(many(990_000), [])
    await known.of(variants(0), [])
    expect(asked.at(-1)).toEqual([variant(0)])
  })

  it('take no longer than the deadline, and what is found later is for the next batch', async () => {
    const { promise: slow, resolve: arrive } = Promise.withResolvers<void>()
    let signalled = false
    const { known } = create({
      deadlineMs: 20,
      async resolve(_, signal, onMove) {
        onMove({ variantId: variant(1), findingId: finding('a'), rank: 1n })
        await slow
        signalled = signal.aborted
        onMove({ variantId: variant(2), findingId: finding('b'), rank: 1n })
      },
    })
    expect([...(await known.of(variants(1, 2), [1, 2].map(request))).keys()]).toEqual([variant(1)])
    arrive()
    await until('the second is known', async () => (await known.of(variants(2), [])).size === 1)
    expect(signalled).toBe(true)
  })

  it('are waited for by a batch with the same new variant', async () => {
    const { promise: slow, resolve: arrive } = Promise.withResolvers<void>()
    const { known, mapped, asked } = create({
      async resolve(_, __, onMove) {
        await slow
        onMove({ variantId: variant(1), ...(mapped.get(variant(1)) as Membership) })
      },
    })
    mapped.set(variant(1), { findingId: finding('a'), rank: 1n })
    const both = [known.of(variants(1), [request(1)]), known.of(variants(1, 2), [request(1)])]
    await until('the first has asked', async () => asked.length === 1)
    arrive()
    for (const found of await Promise.all(both)) expect(found.get(variant(1))?.findingId).toBe(finding('a'))
    expect(asked).toEqual([[variant(1)], [variant(2)]])
  })

  it('are those as sent if ClickHouse fails, and are looked up again', async () => {
    let fails = true
    const { known } = create({
      async selectMemberships({ variantIds }) {
        if (fails) throw new Error('down')
        return variantIds.map(variantId => ({ variantId, findingId: finding('a'), rank: 1n }))
      },
    })
    expect((await known.of(variants(1), [request(1)])).size).toBe(0)
    fails = false
    expect((await known.of(variants(1), [])).size).toBe(1)
  })
})
