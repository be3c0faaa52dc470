import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AlertsStage, startAlertsStage } from '../support/alerts/alerts-stage.ts'
import { CRASH_KINDS, runCrashes } from '../support/alerts/run-crashes.ts'
import { CRASH_SETTINGS } from '../support/span-exports.ts'

const [KILLS, FINDINGS] = [20, 400]

let stage: AlertsStage

beforeAll(async () => {
  stage = await startAlertsStage(CRASH_KINDS, CRASH_SETTINGS)
})
afterAll(() => stage?.stop())

it(`calls for each event through ${KILLS} kills, and repeats only equal ids`, async () => {
  const ledger = await runCrashes(stage, { kills: KILLS, findings: FINDINGS, isSpiking: false })
  expect(ledger.faults()).toEqual({ lost: [], doubled: [], uncaused: [] })
}, 900_000)
