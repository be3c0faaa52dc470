import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createClickHouse } from '../../clickhouse/client.ts'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { MIN_REQUEST_COST } from '../../ingest/admission/request-cost.ts'
import { findPrometheus, type Prometheus } from '../support/prometheus/find-prometheus.ts'
import { type RunningPrometheus, readDeployFile, startPrometheus } from '../support/prometheus/start-prometheus.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'
import { until } from '../support/until.ts'

const DEPLOY = new URL('../../deploy/', import.meta.url).pathname
const found = findPrometheus()
if (typeof found === 'string') console.log(`\nSKIPPED, no alert and no dashboard was tested: ${found}\n`)
const commands = found as Prometheus

/**
 * Thresholds that a test installation reaches at once or within seconds. Each such alert is shown to fire on real metrics;
 * penstock.rules.test.yml shows its real threshold and its delay.
 */
const LOWERED: Readonly<Record<string, readonly [from: string, to: string]>> = {
  PenstockEventLoopSlow: ['> 0.5', '> 0'],
  PenstockQueueOld: ['> 300', '> 3'],
  PenstockDeadLettersRising: ['> 100', '> 0'],
  PenstockJobsRetried: ['> 50', '>= 0'],
  PenstockRedisMemoryHigh: ['> 0.6', '> 0'],
  PenstockBackupOld: ['> 10800', '> 0'],
  PenstockCommitsSlow: ['> 0.25', '> 0'],
  PenstockClickHouseParts: ['> 600', '> 0'],
  PenstockClickHouseDiskFull: ['< 0.15', '< 1'],
  PenstockDeduplicationWindowShort: ['> 0.8', '> 0'],
  PenstockStoreRetries: ['> 10', '> 0'],
  PenstockObjectStoreFails: ['> 0.05', '> 0'],
}
/** Those of them whose cause is staged too. */
const STAGED = ['PenstockQueueOld', 'PenstockDeadLettersRising', 'PenstockStoreRetries', 'PenstockObjectStoreFails']
/** Alerts that no fault of this test causes. penstock.rules.test.yml shows that they fire. */
const NOT_STAGED = ['PenstockQueueFull', 'PenstockQueuePaused', 'PenstockQueueStoreLost', 'PenstockRedisLosesData']

/** Returns the rules without delays, with short windows and the lowered thresholds. */
function quickRules(text: string): string {
  const quick = text.replaceAll(/^( +for:) \w+$/gm, '$1 0s').replaceAll(/\[\d+[mh]\]/g, '[20s]')
  const rules = quick.split(/(?=^ +- alert:)/m)
  return rules
    .map(rule => {
      const [from, to] = LOWERED[/- alert: (\w+)/.exec(rule)?.[1] ?? ''] ?? ['', '']
      if (!rule.includes(from)) throw new Error(`a rule has no threshold ${from}:\n${rule}`)
      return rule.replace(from, to)
    })
    .join('')
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
    at = await local.untilReady(60_000)
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

  /** Waits until the alert fires, or until it does not, and returns its labels. */
  function untilAlert(name: string, isFiring = true) {
    return until(
      `${name} ${isFiring ? 'fires' : 'ends'}`,
      async () => {
        const rule = (await prometheus.alerts()).find(alert => alert.name === name)
        if (rule === undefined) throw new Error(`there is no alert ${name}`)
        if (rule.state === 'firing') fired.add(name)
        return (rule.state === 'firing') === isFiring && rule.alerts.map(({ labels }) => labels)
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
          queries.set(`${file}: ${title}: ${expr}`, expr.replaceAll('$__rate_interval', '20s'))
        }
      }
    }
    for (const { name, query } of await prometheus.alerts()) {
      queries.set(`${name}: ${query}`, query.replace(/ (==|>=|<=|>|<) [\d.]+$/, ''))
    }
    expect(queries.size).toBeGreaterThan(80)
    let empty: string[] = []
    await until(
      'every query returns data',
      async () => {
        empty = []
        for (const [name, query] of queries) {
          const samples = await prometheus.query(query)
          if (!samples.some(({ value }) => !Number.isNaN(value))) empty.push(name)
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

  it('workers that stop are down, their queues get old, and a surface is refused at its share', async () => {
    signal('workers', 'SIGSTOP')
    expect(await untilAlert('PenstockProcessDown')).toMatchObject([{ job: 'penstock-workers' }])
    expect(JSON.stringify(await untilAlert('PenstockQueueOld'))).toContain('"queue":"traces"')
    await until('a surface is over its share', async () => (await send(at, '/drain/v1/logs', LOGS)) === 429)
    await untilAlert('PenstockSurfaceOverShare')
    signal('workers', 'SIGCONT')
    await untilAlert('PenstockProcessDown', false)
    await untilAlert('PenstockQueueOld', false)
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
    signal('redis', 'SIGCONT')
    await untilAlert('PenstockRedisDown', false)

    await queues.config('SET', 'maxclients', '1')
    await queues.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await untilAlert('PenstockNotReady')
    await queues.config('SET', 'maxclients', '10000')
    await untilAlert('PenstockNotReady', false)
  })

  it('no alert is left that was not shown to fire', async () => {
    const names = (await prometheus.alerts()).map(({ name }) => name)
    expect(names.filter(name => !fired.has(name) && !NOT_STAGED.includes(name))).toEqual([])
  })
})

const TRACES = {
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] },
      scopeSpans: [
        {
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
              name: 'GET /cart',
              startTimeUnixNano: '1790000000000000000',
              endTimeUnixNano: '1790000000042000000',
              status: { code: 2, message: 'the cart is empty' },
            },
          ],
        },
      ],
    },
  ],
}
const LOGS = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a line' } }] }] }] }
const METRICS = {
  resourceMetrics: [
    {
      scopeMetrics: [
        { metrics: [{ name: 'm', gauge: { dataPoints: [{ asInt: '1', timeUnixNano: '1790000000000000000' }] } }] },
      ],
    },
  ],
}
const CHUNK_TIME = 1_790_000_000_000
const CHUNK_METADATA = encodeURIComponent(
  Buffer.from(JSON.stringify({ windowId: 'w', segmentId: 0, firstTs: CHUNK_TIME, lastTs: CHUNK_TIME })).toString(
    'base64',
  ),
)
/** Gzipped bytes that are not an export. The edge does not look into them. */
const UNREADABLE = gzipSync(Buffer.alloc(64, 0xff))

async function send({ baseUrl, publicKey }: LocalCredentials, path: string, body: unknown): Promise<number> {
  const isBytes = body instanceof Uint8Array
  const response = await fetch(baseUrl + path, {
    method: 'POST',
    headers: {
      'x-service-public-key': publicKey,
      'content-type': isBytes ? 'application/x-protobuf' : 'application/json',
      ...(isBytes && { 'content-encoding': 'gzip' }),
    },
    body: isBytes ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(5_000),
  })
  await response.arrayBuffer()
  return response.status
}

/** Sends one request of each signal, and reads one page. */
async function sendAll(at: LocalCredentials): Promise<void> {
  await Promise.all([
    send(at, '/drain/v1/traces', TRACES),
    send(at, '/drain/v1/logs', LOGS),
    send(at, '/drain/v1/metrics', METRICS),
    send(at, '/v3/session', { sessionId: 'session-1' }),
    send(at, `/v3/replay/upload/${randomUUID()}?metadata=${CHUNK_METADATA}`, {
      type: 4,
      data: {},
      timestamp: CHUNK_TIME,
    }),
    fetch(`${at.apiUrl}/v3/findings`, { headers: { authorization: `Bearer ${at.sessionToken}` } }),
  ])
}
