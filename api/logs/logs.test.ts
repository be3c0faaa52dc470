import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HISTOGRAM_STEPS_MAX } from '../../schemas/http/logs.ts'
import { chooseSteps } from './logs.ts'

const MAX_MS = 9_223_372_036_854
const time = fc.tuple(fc.nat(MAX_MS), fc.nat(MAX_MS)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)

describe('the steps of a histogram', () => {
  it('contain the whole time, begin at multiples of their length, and are bounded in number', () => {
    fc.assert(
      fc.property(time, fc.option(fc.integer({ min: 1, max: 31_536_000 }), { nil: undefined }), ([from, to], step) => {
        const steps = chooseSteps(from, to, step)
        if (!steps.ok) return step !== undefined
        const { startMs, stepMs, count } = steps.value
        const isWhole = startMs <= from && from - startMs < stepMs && startMs + count * stepMs >= to
        return isWhole && startMs % stepMs === 0 && count >= 1 && count <= HISTOGRAM_STEPS_MAX
      }),
    )
  })

  it('may have the least length that a refusal names', () => {
    fc.assert(
      fc.property(time, ([from, to]) => {
        const refused = chooseSteps(from, to, 1)
        if (refused.ok) return
        const least = Number(/at least (\d+)/.exec(refused.problem.message)?.[1])
        expect(chooseSteps(from, to, least).ok).toBe(true)
      }),
    )
  })
})
