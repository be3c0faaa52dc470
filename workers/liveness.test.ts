import { describe, expect, it } from 'vitest'
import type { QueueName } from '../schemas/queues/names.ts'
import { MINUTE_MS } from '../schemas/units.ts'
import { Liveness } from './liveness.ts'

/** Two pools of rows and one of objects, of which `traces` and `replay` have work. */
function process() {
  let nowMs = 1_000 * MINUTE_MS
  const pool = (queue: QueueName, activeJobs: number) => ({
    queue,
    activeJobs,
    lastProgressAt: nowMs,
    lastAttemptAt: nowMs,
  })
  const [traces, logs, replay] = [pool('traces', 1), pool('logs', 0), pool('replay', 1)]
  const liveness = new Liveness([traces, logs, replay], () => nowMs)
  const waiting = new Map<QueueName, number>([
    ['traces', 3],
    ['replay', 1],
  ])
  return {
    traces,
    logs,
    replay,
    liveness,
    waiting,
    /** Lets minutes pass, in each of which the work runs. */
    pass(minutes: number, work: () => void = () => {}, waitingJobs: typeof waiting | undefined = waiting) {
      for (let minute = 0; minute < minutes; minute++) {
        nowMs += MINUTE_MS
        replay.lastProgressAt = replay.lastAttemptAt = nowMs
        work()
        liveness.observe(waitingJobs)
      }
    },
    now: () => nowMs,
  }
}

describe('a process of workers', () => {
  it('is live while payloads are settled, and while there is no work', () => {
    const { pass, traces, liveness, now } = process()
    pass(60, () => Object.assign(traces, { lastProgressAt: now(), lastAttemptAt: now() }))
    expect(liveness.wedged()).toEqual([])
    Object.assign(traces, { activeJobs: 0 })
    pass(60, undefined, new Map())
    expect(liveness.wedged()).toEqual([])
  })

  it('is not live when jobs wait and none is taken', () => {
    const { pass, traces, liveness } = process()
    traces.activeJobs = 0
    pass(2)
    expect(liveness.wedged()).toEqual([])
    pass(1)
    expect(liveness.wedged()).toEqual(['traces'])
  })

  it('is not live when a job hangs', () => {
    const { pass, liveness } = process()
    pass(3)
    expect(liveness.wedged()).toEqual(['traces'])
  })

  it('is live for hours while ClickHouse is unavailable, although objects are stored', () => {
    const { pass, traces, liveness, now } = process()
    pass(240, () => Object.assign(traces, { lastAttemptAt: now() }))
    expect(liveness.wedged()).toEqual([])
  })

  it('is not live when a pool repeats the same attempts for half an hour while others store into ClickHouse', () => {
    const { pass, traces, logs, liveness, now } = process()
    const work = () => {
      traces.lastAttemptAt = now()
      logs.lastProgressAt = now()
    }
    pass(30, work)
    expect(liveness.wedged()).toEqual([])
    pass(1, work)
    expect(liveness.wedged()).toEqual(['traces'])
  })

  it('is live for hours while Redis does not answer, and for two minutes afterwards', () => {
    const { pass, liveness } = process()
    for (let i = 0; i < 240; i++) pass(1, () => liveness.observe(undefined), undefined)
    expect(liveness.wedged()).toEqual([])
  })
})
