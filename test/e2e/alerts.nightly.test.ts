import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createClickHouse } from '../../clickhouse/client.ts'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { MIN_REQUEST_COST } from '../../ingest/admission/request-cost.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { findPrometheus, type Prometheus } from '../support/prometheus/find-prometheus.ts'
import { LOWERED, quickRules } from '../support/prometheus/quick-rules.ts'
import { type RunningPrometheus, readDeployFile, startPrometheus } from '../support/prometheus/start-prometheus.ts'
import { LOGS, send, sendAll, UNREADABLE } from '../support/prometheus/traffic.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'
import { until } from '../support/until.ts'

const DEPLOY = new URL('../../deploy/', import.meta.url).pathname
const found = findPrometheus()
if (typeof found === 'string') console.log(`\nSKIPPED, no alert and no dashboard was tested: ${found}\n`)
const commands = found as Prometheus

/** Those of them whose cause is staged too. */
const STAGED = [
  'PenstockQueueOld',
  'PenstockSurfaceOverShare',
  'PenstockDeadLettersRising',
  'PenstockStoreRetries',
  'PenstockObjectStoreFails',
]
/** Alerts that no fault of this test causes. penstock.rules.test.yml shows that they fire. */
const NOT_STAGED = [
  'PenstockQueueFull',
  'PenstockQueuePaused',
  'PenstockDeliveriesFail',
  'PenstockQueueStoreLost',
  'PenstockRedisLosesData',
  'PenstockCertificateEnds',
]
/** Queries that have data only once something rare has happened. Their metrics are known, in any case. */
const RARE = [
  'PenstockCertificateEnds',
  'Bytes of replays and maps stored',
  'Completions',
  'Frames resolved',
  'Manifests and maps found in memory',
  'Parts of source maps',
  'Records left out',
  'Replay chunks without metadata',
  'Responses that are not 2xx',
  'Surfaces that are furthest behind',
  'Time to a verdict, 99th percentile',
  'Time to complete a release, 99th percentile',
  'Time until certificates end',
]

/** Returns a query of a panel with the values of its variables. */
function filled(expr: string): string {
  const values = { __rate_interval: '20s', cluster: '', namespace: '', job: '.*', instance: '.*' }
  return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`$${name}`, value), expr)
}

/** Alerts that have fired so far. */
const fired = new Set<string>()

const dashboardSchema = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) })),
})

describe.skipIf(typeof found === 'string')('alerts and dashboards', () => {
  let dir: string
  let local: LocalStart
  let at: LocalCredentials
  let prometheus: RunningPrometheus
  let queues: Redis
  let directory: Redis
  let traffic: NodeJS.Timeout

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-alerts-'))
    const settings = {
      QUEUE_MAX_COST: String(60 * MIN_REQUEST_COST),
      DEAD_LETTER_MAX_COUNT_PER_DAY: '3',
      LOG_LEVEL: 'warn',
    }
    local = runLocalStart(join(dir, 'local'), { ...(await freePorts()), ...settings })
    at = await local.untilReady(150_000)
    const { ingest, workers, api } = at.adminUrls
    prometheus = await startPrometheus({
      command: commands.prometheus,
      dir: join(dir, 'prometheus'),
      targets: { 'penstock-edge': ingest, 'penstock-workers': workers, 'penstock-api': api },
      rules: quickRules(await readDeployFile('prometheus/penstock.rules.yml')),
    })
    queues = new Redis(at.redisUrl)
    directory = new Redis(at.directoryRedisUrl)
    traffic = setInterval(() => void sendAll(at).catch(() => {}), 500)
  })
  afterAll(async () => {
    clearInterval(traffic)
    queues?.disconnect()
    directory?.disconnect()
    await prometheus?.stop()
    for (const name of ['redis', 'clickhouse', 'workers']) signal(name, 'SIGCONT')
    local?.signal('SIGTERM')
    await local?.exited
    await rm(dir, { recursive: true, force: true })
  })

  function signal(name: string, which: NodeJS.Signals): void {
    const pid = local?.pidsOf(name).at(-1)
    try {
      if (pid !== undefined) process.kill(pid, which)
    } catch {}
  }

  /** Waits until the alert fires for a label, or until it does not fire at all, and returns its labels. */
  function untilAlert(name: string, isFiring = true, label = '') {
    return until(
      `${name} ${isFiring ? 'fires' : 'ends'}`,
      async () => {
        const rule = (await prometheus.alerts()).find(alert => alert.name === name)
        if (rule === undefined) throw new Error(`there is no alert ${name}`)
        if (rule.state === 'firing') fired.add(name)
        const labels = rule.alerts.map(alert => alert.labels)
        return (rule.state === 'firing') === isFiring && JSON.stringify(labels).includes(label) && labels
      },
      { deadlineMs: 40_000, everyMs: 250 },
    )
  }

  it('promtool accepts the configuration and the rules, and each alert fires after its delay and not before', async () => {
    const promtool = (...args: string[]) => promisify(execFile)(commands.promtool, args, { cwd: `${DEPLOY}prometheus` })
    await promtool('check', 'config', 'prometheus.yml')
    await promtool('check', 'rules', '--lint=all', '--lint-fatal', 'penstock.rules.yml')
    const { stdout } = await promtool('test', 'rules', 'penstock.rules.test.yml')
    expect(stdout).toContain('SUCCESS')
    const tests = await readDeployFile('prometheus/penstock.rules.test.yml')
    const tested = new Set([...tests.matchAll(/alertname: (\w+)/g)].map(match => match[1]))
    expect((await prometheus.alerts()).map(({ name }) => name).filter(name => !tested.has(name))).toEqual([])
  })

  it('every query of every panel and of every rule returns data', async () => {
    const queries = new Map<string, string>()
    for (const file of await readdir(`${DEPLOY}grafana/dashboards`)) {
      const dashboard = dashboardSchema.parse(JSON.parse(await readFile(`${DEPLOY}grafana/dashboards/${file}`, 'utf8')))
      for (const { title, targets } of dashboard.panels) {
        for (const { expr } of targets) {
          queries.set(`${file}: ${title}: ${expr}`, filled(expr))
        }
      }
    }
    for (const { name, query } of await prometheus.alerts()) {
      queries.set(`${name}: ${query}`, query.replace(/ (==|>=|<=|>|<) [\d.]+$/, ''))
    }
    expect(queries.size).toBeGreaterThan(80)
    const texts = await Promise.all(
      Object.values(at.adminUrls).map(async url => (await fetch(`${url}/metrics`)).text()),
    )
    const known = new Set([...texts.join('').matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
    const isRare = ([name, query]: readonly [string, string]) =>
      RARE.some(title => name.startsWith(`${title}: `) || name.includes(`.json: ${title}: `)) &&
      [...query.matchAll(/\b(penstock_\w+?)(?:_bucket|_sum|_count)?\b/g)].every(([, metric]) => known.has(metric))
    let empty: string[] = []
    await until(
      'every query returns data',
      async () => {
        empty = []
        for (const [name, query] of queries) {
          const samples = await prometheus.query(query)
          if (!samples.some(({ value }) => !Number.isNaN(value)) && !isRare([name, query])) empty.push(name)
        }
        return empty.length === 0
      },
      { deadlineMs: 100_000, everyMs: 1_000 },
    ).catch(() => expect(empty).toEqual([]))
  })

  it('alerts whose threshold is lowered below what an installation has fire', async () => {
    for (const name of Object.keys(LOWERED)) if (!STAGED.includes(name)) await untilAlert(name)
  })

  it('rejected requests become dead letters, and over their bound they are discarded', async () => {
    for (let i = 0; i < 6; i++) expect(await send(at, '/drain/v1/traces', UNREADABLE)).toBe(200)
    expect(await untilAlert('PenstockDeadLettersRising')).toMatchObject([{ queue: 'traces' }])
    expect(await untilAlert('PenstockDeadLettersDiscarded')).toMatchObject([{ queue: 'traces' }])
  })

  it('a job that no worker takes again is reported until it is gone', async () => {
    const failed = queueKeys('traces').failed('express')
    await queues.zadd(failed, Date.now(), 'job-without-data')
    expect(await untilAlert('PenstockJobsFailed')).toMatchObject([{ queue: 'traces' }])
    await queues.zrem(failed, 'job-without-data')
    await untilAlert('PenstockJobsFailed', false)
  })

  it('workers that stop are down, their queues get old, and a surface is refused at its share', async () => {
    signal('workers', 'SIGSTOP')
    expect(await untilAlert('PenstockProcessDown')).toMatchObject([{ job: 'penstock-workers' }])
    expect(await untilAlert('PenstockComponentDown')).toMatchObject([{ job: 'penstock-workers' }])
    await untilAlert('PenstockQueueOld', true, '"queue":"traces"')
    await until('a surface is over its share', async () => (await send(at, '/drain/v1/logs', LOGS)) === 429)
    await untilAlert('PenstockSurfaceOverShare')
    await untilAlert('PenstockQueueWithoutWorker', true, '"queue":"receipts"')
    signal('workers', 'SIGCONT')
    for (const name of ['ProcessDown', 'ComponentDown', 'QueueOld', 'QueueWithoutWorker'])
      await untilAlert(`Penstock${name}`, false)
  })

  it('ClickHouse that refuses or hangs is reported', async () => {
    const clickhouse = createClickHouse({ url: at.clickhouseUrl, database: 'penstock' })
    await clickhouse.command({ query: 'RENAME TABLE logs TO logs_away' })
    expect(await untilAlert('PenstockStoreRetries')).toMatchObject([{ queue: 'logs' }])
    await clickhouse.command({ query: 'RENAME TABLE logs_away TO logs' })
    await clickhouse.close()
    signal('clickhouse', 'SIGSTOP')
    await untilAlert('PenstockClickHouseDown')
    signal('clickhouse', 'SIGCONT')
    await untilAlert('PenstockClickHouseDown', false)
  })

  it('an object store that is down is reported', async () => {
    signal('s3', 'SIGKILL')
    expect(await untilAlert('PenstockObjectStoreFails')).toContainEqual(
      expect.objectContaining({ severity: 'warning' }),
    )
  })

  it('Redis that hangs, loses durability or takes no connections is reported', async () => {
    await directory.config('SET', 'appendonly', 'no')
    // Processes look at the settings when they connect, else every minute.
    await directory.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    expect(await untilAlert('PenstockRedisNotDurable')).toMatchObject([{ store: 'directory' }])
    await directory.config('SET', 'appendonly', 'yes')
    // A scrape may have come while they connected.
    await untilAlert('PenstockRedisDown', false)

    signal('redis', 'SIGSTOP')
    expect(await untilAlert('PenstockRedisDown')).toMatchObject([{ store: 'queues' }])
    await untilAlert('PenstockCommitsFail')
    await untilAlert('PenstockServerErrors')
    await untilAlert('PenstockEdgeFails')
    signal('redis', 'SIGCONT')
    await untilAlert('PenstockRedisDown', false)

    await queues.config('SET', 'maxclients', '1')
    await queues.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await untilAlert('PenstockNotReady')
    await queues.config('SET', 'maxclients', '10000')
    await untilAlert('PenstockNotReady', false)
  })

  it('the commands of the runbook run', async () => {
    const { redisUrl: REDIS, directoryRedisUrl: DIRECTORY, clickhouseUrl, adminUrls } = at
    const { ingest: EDGE, workers: WORKERS, api: API } = adminUrls
    const variables = { REDIS, DIRECTORY, CLICKHOUSE: `${clickhouseUrl}/?database=penstock`, EDGE, WORKERS, API }
    const runbook = await readFile(`${DEPLOY}../docs/runbook.md`, 'utf8')
    const commands = [...runbook.matchAll(/`((?:curl|redis-cli|for) [^`]+)`/g)].map(([, text = '']) => text)
    for (const [, block = ''] of runbook.matchAll(/^ *```sh\n([^`]+)```$/gm)) commands.push(block)
    expect(commands.length).toBeGreaterThan(40)
    const shell = (text: string) =>
      promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], { env: { PATH: process.env.PATH, ...variables } })
    for (const text of commands) if (!text.startsWith('. ')) await shell(text)
  })

  it('a directory that was emptied is reported, and its edges are not ready', async () => {
    await directory.flushall()
    await untilAlert('PenstockDirectoryEmpty')
    expect(JSON.stringify(await untilAlert('PenstockComponentDown'))).toContain('"job":"penstock-edge"')
  })

  it('no alert is left that was not shown to fire', async () => {
    const names = (await prometheus.alerts()).map(({ name }) => name)
    expect(names.filter(name => !fired.has(name) && !NOT_STAGED.includes(name))).toEqual([])
  })
})
