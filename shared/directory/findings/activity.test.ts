import { describe, expect, it } from 'vitest'
import type { FindingEntry } from '../../../schemas/records/change.ts'
import { textOf } from '../changes/bounded-log.ts'
import { activityBytes, FINDING_ENTRIES_KEPT, planActivity } from './activity.ts'

const finding = { workspaceId: 'ws_1', findingId: `fnd_${'a'.repeat(26)}` }
const entry = (i: number, more: Partial<FindingEntry> = {}): FindingEntry => ({
  id: `act_${i.toString(16).padStart(20, '0')}`,
  createdAt: new Date(i * 1_000).toISOString(),
  by: null,
  action: 'resolved',
  ...more,
})
const texts = (...numbers: number[]) => numbers.map(i => textOf(entry(i)))

/** Does what the commands do to an activity, and returns it. */
function applied(own: readonly string[], commands: ReturnType<typeof planActivity>['commands']): string[] {
  const left = new Map(own.map(text => [text, Date.parse(JSON.parse(text).createdAt)]))
  for (const [name, , ...words] of commands) {
    if (name === 'ZREM') for (const word of words) left.delete(String(word))
    if (name === 'ZADD') for (let i = 0; i < words.length; i += 2) left.set(String(words[i + 1]), Number(words[i]))
  }
  return [...left].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([text]) => text)
}

describe('the activity of a finding', () => {
  it('keeps the newest entries, also of the findings that are merged into it', () => {
    const own = texts(...Array.from({ length: FINDING_ENTRIES_KEPT }, (_, i) => 2 * i))
    const plan = planActivity(finding, { own, others: texts(1, 399) }, [entry(500)], Number.POSITIVE_INFINITY)
    const kept = applied(own, plan.commands)
    expect(kept).toHaveLength(FINDING_ENTRIES_KEPT)
    expect(kept.slice(-3)).toEqual(texts(398, 399, 500))
    expect(kept[0]).toBe(texts(4)[0])
    expect(plan.bytes).toBe(activityBytes(kept))
  })

  it('does not grow where there is no room, and always has what was done last', () => {
    const own = texts(1, 2, 3)
    const plan = planActivity(finding, { own }, [entry(4), entry(5)], -1)
    expect(applied(own, plan.commands)).toEqual(texts(3, 4, 5))
    const only = planActivity(finding, { own: [] }, [entry(4)], 0)
    expect(applied([], only.commands)).toEqual(texts(4))
    expect(only.bytes).toBe(activityBytes(texts(4)))
  })

  it('is the same when an entry is added again', () => {
    const own = texts(1, 2)
    const plan = planActivity(finding, { own, others: texts(2) }, [], Number.POSITIVE_INFINITY)
    expect(applied(own, plan.commands)).toEqual(own)
    expect(plan.bytes).toBe(activityBytes(own))
  })
})
