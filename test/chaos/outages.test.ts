import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { type ChaosProcess, type Installation, startInstallation } from '../support/chaos/installation.ts'
import { MachineShare } from '../support/hostile/machine-share.ts'
import { residentBytes } from '../support/hostile/memory-trend.ts'
import { lasting } from '../support/length.ts'

const SECONDS = lasting('OUTAGE_SECONDS', { nightly: 60, else: 5 })
/** Requests per second of each kind of payload. */
const RATE = 25
const SEED = 1
const ANSWERED_WITHIN_MS = 1_000
/** Time between two requests that need no store. */
const CONTROL_MS = 50
const MB = 1_000_000
const MOST_MB = { edge: 200, workers: 400 } as const
const SAMPLE_MS = 250
const RECOVERY_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 180_000

let installation: Installation

beforeAll(async () => {
  installation = await startInstallation({ edges: 2, workers: 2 })
})

afterAll(() => installation?.stop())

/**
 * One after the other on the same processes, and with one ledger, so that an outage that leaves something behind is seen in the
 * next one.
 */
it(`answers within a second, in little memory, and loses nothing while each store is unavailable for ${SECONDS} s`, async () => {
  const { servers, edges, workers, edgeUrls, secrets } = installation
  const clients = startClients({ edgeUrls, secrets, seed: SEED, rate: RATE })
  const { ledger, builds } = clients
  try {
    for (const name of ['redis', 'clickhouse', 's3'] as const) {
      await clients.untilServed(RECOVERY_DEADLINE_MS)
      const share = new MachineShare()
      const memory = samplePeaks([...edges, ...workers])
      const control = sampleAnswers(edgeUrls)
      const sentBefore = ledger.entries.length
      clients.takeSlowestMs()
      await servers[name].service.kill9()
      await delay(SECONDS * 1_000)
      const slowestMs = clients.takeSlowestMs()
      const controlMs = await control.stop()
      await servers[name].service.restart()
      await clients.untilServed(RECOVERY_DEADLINE_MS)
      const peaks = memory.stop()
      const sent = ledger.entries.length - sentBefore
      const left = share.left()
      console.log(
        `${SECONDS} s without ${name}: ${sent} requests, slowest answer ${Math.round(slowestMs)} ms, without stores ${Math.round(controlMs)} ms, ` +
          `peaks ${JSON.stringify(peaks)} MB, ${Math.round(100 * left)} % of the machine`,
      )
      // What a busy machine takes for any answer is not the fault of the outage.
      expect(slowestMs).toBeLessThan(ANSWERED_WITHIN_MS / left + controlMs)
      // An edge whose event loop is blocked would be slow in both.
      expect(controlMs).toBeLessThan(ANSWERED_WITHIN_MS / left)
      for (const [process, peak] of Object.entries(peaks)) {
        expect(peak, process).toBeLessThan(MOST_MB[process.startsWith('edge') ? 'edge' : 'workers'])
      }
    }
  } finally {
    await clients.stop()
  }
  for (const build of builds.sent)
    if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
  console.log(`ledger: ${JSON.stringify(ledger.summary())}, answers: ${JSON.stringify(ledger.answers())}`)
  await untilSettled(installation, SETTLE_DEADLINE_MS)
  expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
  expect(ledger.answers()).not.toHaveProperty('TimeoutError')
  expect(installation.unexpectedEnds()).toEqual([])
})

/** Sends requests that need no store, one after the other to each edge; `stop` returns the time of the slowest answer. */
function sampleAnswers(edgeUrls: readonly string[]): { stop(): Promise<number> } {
  let isStopped = false
  let slowestMs = 0
  const sampling = edgeUrls.map(async url => {
    while (!isStopped) {
      const startedAt = performance.now()
      await (await fetch(new URL('/unknown', url))).arrayBuffer()
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
      await delay(CONTROL_MS)
    }
  })
  return {
    async stop() {
      isStopped = true
      await Promise.all(sampling)
      return slowestMs
    },
  }
}

/** Samples the resident memory of processes; `stop` returns the largest of each in MB. */
function samplePeaks(processes: readonly ChaosProcess[]): { stop(): Record<string, number> } {
  const peaks: Record<string, number> = {}
  const timer = setInterval(() => {
    for (const { name, member } of processes) {
      peaks[name] = Math.max(peaks[name] ?? 0, Math.round(residentBytes(member.pid) / MB))
    }
  }, SAMPLE_MS)
  return {
    stop() {
      clearInterval(timer)
      return peaks
    },
  }
}
