import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fitModel } from './cost-model.ts'
import { divideLoad } from './divide-load.ts'
import { measuredPoints } from './example-points.ts'
import { STANDARD_INPUTS } from './inputs.ts'
import { makePlan } from './make-plan.ts'

const model = fitModel(measuredPoints)

it('plans one installation where one is enough', () => {
  expect(divideLoad(model, STANDARD_INPUTS)).toEqual({
    installations: 1,
    because: [],
    share: STANDARD_INPUTS,
    plan: makePlan(model, STANDARD_INPUTS),
  })
})

it('plans as many installations as have room for the load, and no fewer', () => {
  fc.assert(
    fc.property(fc.double({ min: 1e11, max: 1e13, noNaN: true }), spans => {
      const inputs = { ...STANDARD_INPUTS, 'spans-per-day': spans }
      const { installations, because, share, plan } = divideLoad(model, inputs)
      expect(plan.exceeded).toEqual([])
      expect(plan).toEqual(makePlan(model, share))
      expect(share['spans-per-day'] * installations).toBeCloseTo(spans, -3)
      expect(because).toEqual(makePlan(model, inputs).exceeded)
      if (installations === 1) return
      const fewer = { ...inputs, 'spans-per-day': spans / (installations - 1) }
      expect(makePlan(model, fewer).exceeded).not.toEqual([])
    }),
    { numRuns: 20 },
  )
})

it('leaves a load in one plan, with the bounds that it exceeds, where no division helps', () => {
  const inputs = { ...STANDARD_INPUTS, 'spans-per-day': 1e15, 'clickhouse-disk': 1e-6 }
  const { installations, plan } = divideLoad(model, inputs)
  expect([installations, plan.exceeded.length > 0]).toEqual([1, true])
})
