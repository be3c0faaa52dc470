import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AlertsStage, startAlertsStage } from '../support/alerts/alerts-stage.ts'
import { rounds } from '../support/length.ts'
import { until } from '../support/until.ts'

const KILLS = 6 + rounds(14)
const FINDINGS_OF_REQUEST = 25

let stage: AlertsStage

beforeAll(async () => {
  const settings = { JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' }
  stage = await startAlertsStage(['finding.created'], settings)
})
afterAll(() => stage?.stop())

it(`calls for each new finding through ${KILLS} kills of watcher and deliverer, and repeats only equal ids`, async () => {
  const calledTypes = () => new Set(stage.events().flatMap(({ data }) => ('finding' in data ? data.finding.type : [])))
  const sent: string[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const types = Array.from({ length: FINDINGS_OF_REQUEST }, (_, i) => `Kind${kill}x${i}`)
    await stage.throwErrors(types)
    sent.push(...types)
    // Killed while occasions are found, queued and sent.
    if (kill % 2 === 0) {
      await until('some are called for', () => types.some(type => calledTypes().has(type)), { deadlineMs: 60_000 })
    }
    await stage.stack.workers.kill9()
    await stage.stack.workers.restart()
  }
  await until('all are called for', () => sent.every(type => calledTypes().has(type)), { deadlineMs: 120_000 })
  const idsOf = Map.groupBy(stage.events(), ({ data }) => ('finding' in data ? data.finding.type : ''))
  for (const type of sent) {
    expect(new Set(idsOf.get(type)?.map(({ data }) => data.id)).size, type).toBe(1)
  }
})
