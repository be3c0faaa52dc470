import { expect, it } from 'vitest'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { CommitFailures } from './commit-failures.ts'

/** Failures with a clock, the lines that they logged, and their counts by queue. */
function given() {
  const world = { time: 0, lines: [] as object[], counts: {} as Record<string, number> }
  const logger = { warn: (fields: object) => world.lines.push(fields) } as unknown as Logger
  const failures = new CommitFailures({
    logger,
    count: queue => {
      world.counts[queue] = (world.counts[queue] ?? 0) + 1
    },
    now: () => world.time,
  })
  return { world, failures }
}

it('counts every failure and logs one line a second, with the number of suppressed lines', () => {
  const { world, failures } = given()
  for (world.time = 5; world.time < 2_005; world.time += 100) failures.report('traces', new Error('lost'))
  expect(world.counts).toEqual({ traces: 20 })
  expect(world.lines).toEqual([
    { queue: 'traces', suppressed: 0, error: 'Error: lost' },
    { queue: 'traces', suppressed: 9, error: 'Error: lost' },
  ])
  world.time = 10_000
  failures.report('traces', new Error('lost'))
  expect(world.lines.at(-1)).toMatchObject({ suppressed: 9 })
  world.time = 20_000
  failures.report('traces', new Error('lost'))
  expect(world.lines.at(-1)).toMatchObject({ suppressed: 0 })
})

it('limits the lines of each queue separately', () => {
  const { world, failures } = given()
  for (const queue of ['traces', 'logs', 'traces', 'logs'] as const) failures.report(queue, new Error('lost'))
  expect(world.lines).toMatchObject([{ queue: 'traces' }, { queue: 'logs' }])
  expect(world.counts).toEqual({ traces: 2, logs: 2 })
})

it('logs the error with its code and its cause', () => {
  const { world, failures } = given()
  const cause = new Error('redis did not confirm in time')
  failures.report('traces', new TransientError('the queue could not confirm the write', { cause }))
  expect(world.lines).toMatchObject([
    {
      error: 'TransientError: the queue could not confirm the write',
      code: 'PENSTOCK_TRANSIENT',
      cause: 'Error: redis did not confirm in time',
    },
  ])
})
