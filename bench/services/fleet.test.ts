import { expect, it } from 'vitest'
import { useByKind } from './fleet.ts'

it('sums the CPU time of processes of a kind, and takes the memory of the largest', () => {
  expect(
    useByKind({
      'edge 1': { cpuSeconds: 1, peakMemoryBytes: 10 },
      'worker 1': { cpuSeconds: 2, peakMemoryBytes: 40 },
      'worker 2': { cpuSeconds: 3, peakMemoryBytes: 30 },
      Redis: { cpuSeconds: 4, peakMemoryBytes: 50 },
    }),
  ).toEqual({
    edge: { cpuSeconds: 1, peakMemoryBytes: 10 },
    worker: { cpuSeconds: 5, peakMemoryBytes: 40 },
    Redis: { cpuSeconds: 4, peakMemoryBytes: 50 },
  })
})
