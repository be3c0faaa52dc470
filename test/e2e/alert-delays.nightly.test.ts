import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { findPrometheus, type Prometheus } from '../support/prometheus/find-prometheus.ts'
import { type RunningPrometheus, readDeployFile, startPrometheus } from '../support/prometheus/start-prometheus.ts'
import { sendAll } from '../support/prometheus/traffic.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'
import { until } from '../support/until.ts'

const found = findPrometheus()
if (typeof found === 'string') console.log(`\nSKIPPED, no delay of an alert was tested: ${found}\n`)

/** Within this time of its beginning, an outage pages. */
const PAGE_WITHIN_MS = 180_000
const PAUSE_MS = 1_500

/** Longer than all deadlines of a test. */
const TEST_MS = 600_000

describe.skipIf(typeof found === 'string')('shipped alerts at their own intervals', { timeout: TEST_MS }, () => {
  let dir: string
  let local: LocalStart
  let at: LocalCredentials
  let prometheus: RunningPrometheus
  let directory: Redis
  let traffic: NodeJS.Timeout

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-alert-delays-'))
    local = runLocalStart(join(dir, 'local'), { ...(await freePorts()), LOG_LEVEL: 'warn' })
    at = await local.untilReady(150_000)
    const { ingest, workers, api } = at.adminUrls
    prometheus = await startPrometheus({
      command: (found as Prometheus).prometheus,
      dir: join(dir, 'prometheus'),
      targets: { 'penstock-edge': ingest, 'penstock-workers': workers, 'penstock-api': api },
      rules: await readDeployFile('prometheus/penstock.rules.yml'),
      everySeconds: 15,
    })
    directory = new Redis(at.directoryRedisUrl)
    // Ten requests a second, so that a pause fails some.
    traffic = setInterval(() => void sendAll(at).catch(() => {}), 500)
  })
  afterAll(async () => {
    clearInterval(traffic)
    directory?.disconnect()
    await prometheus?.stop()
    for (const name of ['redis', 'clickhouse', 'workers']) signal(name, 'SIGCONT')
    local?.signal('SIGTERM')
    await local?.exited
    await rm(dir, { recursive: true, force: true })
  })

  function signal(name: string, which: NodeJS.Signals): void {
    const pid = local?.pidsOf(name).at(-1)
    if (pid !== undefined) process.kill(pid, which)
  }

  async function pauseRedis(): Promise<void> {
    signal('redis', 'SIGSTOP')
    await delay(PAUSE_MS)
    signal('redis', 'SIGCONT')
  }

  /** Returns the critical alerts of a state, with the job or store that they name. */
  async function critical(state: 'firing' | 'pending'): Promise<string[]> {
    const rules = (await prometheus.alerts()).filter(({ labels }) => labels.severity === 'critical')
    return rules.flatMap(({ name, alerts }) =>
      alerts
        .filter(alert => alert.state === state)
        .map(({ labels }) => `${name} ${labels.job ?? labels.store ?? ''}`.trim()),
    )
  }

  /** Waits until these alerts fire, and expects that less than three minutes have passed since `begunAtMs`. */
  async function untilPaged(names: readonly string[], begunAtMs: number): Promise<void> {
    const waiting = { deadlineMs: PAGE_WITHIN_MS + 30_000, everyMs: 1_000 }
    const fires = async () => {
      const firing = await critical('firing')
      return names.every(name => firing.includes(name))
    }
    await until(`${names.join(', ')} fire`, fires, waiting)
    expect(Date.now() - begunAtMs).toBeLessThan(PAGE_WITHIN_MS)
  }

  it('a pause of Redis for 1.5 seconds fails requests, and pages no one', async () => {
    const failures = async (window: string) =>
      (await prometheus.query(`sum(increase(penstock_requests_total{status="503"}[${window}]))`))[0]?.value ?? 0
    const sent = async () => (await prometheus.query('rate(penstock_requests_total[1m])')).length
    await until('the traffic is scraped', sent, { deadlineMs: 90_000 })
    // The series of 503 begins with its first event, which Prometheus does not count: so there are two pauses.
    await pauseRedis()
    const failed = async () => (await prometheus.query('penstock_requests_total{status="503"}')).length > 0
    await until('the first failure is scraped', failed, { deadlineMs: 60_000, everyMs: 1_000 })
    await pauseRedis()
    await until('requests have failed', async () => (await failures('5m')) > 0, {
      deadlineMs: 60_000,
      everyMs: 1_000,
    })
    const paged: string[] = []
    await until(
      'the pauses are out of every window, and nothing is pending',
      async () => {
        paged.push(...(await critical('firing')))
        return (await failures('2m')) === 0 && (await critical('pending')).length === 0
      },
      { deadlineMs: 300_000, everyMs: 1_000 },
    )
    expect(paged).toEqual([])
  })

  it('workers that are gone and a ClickHouse that hangs page within three minutes', async () => {
    const begunAtMs = Date.now()
    signal('workers', 'SIGSTOP')
    signal('clickhouse', 'SIGSTOP')
    await untilPaged(['PenstockComponentDown penstock-workers', 'PenstockClickHouseDown'], begunAtMs)
    for (const name of ['clickhouse', 'workers']) signal(name, 'SIGCONT')
    await until('nothing fires', async () => (await critical('firing')).length === 0, { deadlineMs: 120_000 })
  })

  it('a directory that was emptied pages within three minutes', async () => {
    const begunAtMs = Date.now()
    await directory.flushall()
    await untilPaged(['PenstockDirectoryEmpty', 'PenstockComponentDown penstock-edge', 'PenstockEdgeFails'], begunAtMs)
  })
})
