import { expect, it } from 'vitest'
import { checkModel } from './check-model.ts'
import { measuredPoints, point } from './example-points.ts'

it('predicts points that follow the model from the others', () => {
  const checked = checkModel(measuredPoints)
  expect(checked.map(({ name }) => name)).toEqual(['1 of each', '20 spans', '2 workers', '4 workers'])
  for (const { name, cpu } of checked.filter(({ name }) => name !== '20 spans'))
    expect([name, cpu.error]).toEqual([name, expect.closeTo(0)])
})

it('says by how much a point differs from what the others predict', () => {
  const other = point({ name: '2 workers', workers: 2, rowsPerInsert: 40_000, workerCpu: 1.75, clickhouseCpu: 6 })
  const points = measuredPoints.map(one => (one.name === other.name ? other : one))
  const checked = checkModel(points).find(({ name }) => name === other.name)
  // Predicted are 0.5 + 1.75 + 1.5 + 3 seconds, measured are three more.
  expect(checked?.cpu).toEqual({
    predicted: expect.closeTo(6.75),
    measured: expect.closeTo(9.75),
    error: expect.closeTo(6.75 / 9.75 - 1),
  })
})

it('predicts the rate from the cores that were busy at the other points', () => {
  const busy = (cores: number, cpu: number) => (cores * 1e6) / cpu
  const points = [
    point({ name: 'a', spansPerSecond: busy(1.9, 6.425) }),
    point({ name: 'b', workers: 2, spansPerSecond: busy(1.9, 6.425) }),
    point({ name: 'c', workers: 4, spansPerSecond: busy(1, 6.425) }),
  ]
  expect(checkModel(points).at(-1)?.rate.error).toBeCloseTo(0.9)
})

it('checks nothing with fewer than two other fleets', () => {
  expect(checkModel(measuredPoints.slice(0, 5).filter(({ spansPerPayload }) => spansPerPayload === 200))).toEqual([])
})
