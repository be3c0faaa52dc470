import { afterAll, beforeAll, expect, it } from 'vitest'
import { HOUR_MS } from '../../schemas/units.ts'
import { type AlertsStage, startAlertsStage } from '../support/alerts/alerts-stage.ts'
import { CRASH_KINDS, runCrashes, SPIKING } from '../support/alerts/run-crashes.ts'
import { CRASH_SETTINGS } from '../support/span-exports.ts'

const KILLS = Number(process.env.ALERT_KILLS || 200)
const FINDINGS = Number(process.env.ALERT_FINDINGS || 10_000)

let stage: AlertsStage

beforeAll(async () => {
  stage = await startAlertsStage([...CRASH_KINDS, SPIKING], CRASH_SETTINGS)
})
afterAll(() => stage?.stop())

it(
  `calls for each event of ${FINDINGS} findings through ${KILLS} kills, and repeats only equal ids`,
  async () => {
    const ledger = await runCrashes(stage, { kills: KILLS, findings: FINDINGS, isSpiking: true })
    expect(ledger.faults()).toEqual({ lost: [], doubled: [], uncaused: [] })
  },
  2 * HOUR_MS,
)
