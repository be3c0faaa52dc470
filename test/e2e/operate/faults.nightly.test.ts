import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startChild } from '../../../deploy/local/processes/child-process.ts'
import { startS3 } from '../../../deploy/local/stores/s3.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import type { CommitJob } from '../../../schemas/queues/jobs.ts'
import { MIB } from '../../../schemas/units.ts'
import { openQueue, queueKeys } from '../../../shared/queue/queue.ts'
import { type Clients, startClients } from '../../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../../support/chaos/compare-ledger.ts'
import { type Installation, startInstallation } from '../../support/chaos/installation.ts'
import { SERVER_PASSWORD, s3Settings } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

/**
 * Faults that operators cause or meet, one after the other under one load with one ledger. Those of processes, links, disks and
 * outages are in test/chaos.
 */

/** Requests of each kind a second. */
const RATE = 5
const SEED = 1
const SIGN_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 120_000
/** Time limit of a fault with its end. */
const FAULT_MS = 600_000
const AHEAD_MS = 7_200_000
const SMALL_MEMORY_BYTES = 128 * MIB

let installation: Installation
let clients: Clients
let dir: string
let otherS3: LocalService | undefined
/** Keys of others in Redis. */
let others = 0

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-faults-'))
  installation = await startInstallation({ edges: 1, workers: 2 })
  const { edgeUrls, secrets } = installation
  clients = startClients({ edgeUrls, secrets, seed: SEED, rate: RATE })
  await clients.untilServed(SIGN_DEADLINE_MS)
})

afterAll(async () => {
  await clients?.stop()
  await otherS3?.kill9()
  await installation?.stop()
  await rm(dir, { recursive: true, force: true })
})

/** A fault, what shows it, and its end. */
interface OperatorFault {
  readonly name: string
  begin(): Promise<unknown>
  /** Waits for what an operator or a client sees of it. */
  shows(): Promise<unknown>
  end(): Promise<unknown>
}

const FAULTS: readonly OperatorFault[] = [
  {
    name: 'kill -9 of every process and every server at once',
    begin: () =>
      Promise.all([...processes().map(({ member }) => member.kill9()), ...servers().map(one => one.service.kill9())]),
    shows: () => untilAnswered('ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET', '503'),
    async end() {
      await Promise.all(servers().map(({ service }) => service.restart()))
      await Promise.all(processes().map(({ member }) => member.restart()))
    },
  },
  {
    name: 'one of two workers is stopped for longer than its locks',
    begin: async () => process.kill(-firstWorker(), 'SIGSTOP'),
    shows: untilStored,
    end: async () => process.kill(-firstWorker(), 'SIGCONT'),
  },
  {
    name: 'ClickHouse refuses inserts for too many parts',
    begin: () => command('ALTER TABLE spans MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 1'),
    shows: () =>
      until(
        'an insert is refused',
        async () => (await count("SELECT sum(value) FROM system.errors WHERE name = 'TOO_MANY_PARTS'")) > 0,
        { deadlineMs: SIGN_DEADLINE_MS },
      ),
    end: () => command('ALTER TABLE spans RESET SETTING parts_to_delay_insert, parts_to_throw_insert'),
  },
  {
    name: 'keys of others fill the memory of Redis',
    async begin() {
      const { redis } = installation
      await redis.config('SET', 'maxmemory', String(SMALL_MEMORY_BYTES))
      const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
      while ((await used()) < 0.75 * SMALL_MEMORY_BYTES) await redis.set(`others:${others++}`, Buffer.alloc(MIB))
    },
    shows: () => untilAnswered('429'),
    async end() {
      const { redis } = installation
      await redis.unlink(Array.from({ length: others }, (_, i) => `others:${i}`))
      await redis.config('SET', 'maxmemory', '2gb')
    },
  },
  {
    name: 'Redis gets another password while everything runs',
    async begin() {
      const { redis } = installation
      await redis.config('SET', 'requirepass', 'another-password')
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    },
    shows: () => untilAnswered('503'),
    end: () => installation.redis.config('SET', 'requirepass', SERVER_PASSWORD),
  },
  {
    name: 'the bucket is gone',
    async begin() {
      const { s3, servers: running } = installation
      await running.s3.service.kill9()
      const port = Number(new URL(s3.endpoint).port)
      otherS3 = await startS3({ ...s3, dir: join(dir, 's3'), bucket: 'another', port, log: () => {} })
    },
    shows: untilStored,
    async end() {
      await otherS3?.kill9()
      await installation.servers.s3.service.restart()
    },
  },
  {
    name: 'jobs that no edge has made',
    async begin() {
      const queue = openQueue(installation.redis, queueKeys('traces'), 'express')
      for (const data of [{}, { version: 99 }, { payloads: 'none' }])
        await queue.add('malformed', data as unknown as CommitJob)
    },
    shows: untilStored,
    end: async () => {},
  },
]

describe('under load, with an exact ledger at the end', () => {
  it.each(FAULTS)('$name', { timeout: FAULT_MS }, async ({ begin, shows, end }) => {
    await clients.untilServed(SIGN_DEADLINE_MS)
    try {
      await begin()
      await shows()
    } finally {
      await end()
    }
    await clients.untilServed(SIGN_DEADLINE_MS)
  })

  const worker = (settings: Record<string, string>) => ({ script: 'workers/main.ts', settings })
  it.each<[string, () => { script: string; settings: Record<string, string> }, RegExp]>([
    ['user of ClickHouse', () => worker({ CLICKHOUSE_URL: withUser('nobody') }), /clickhouse refuses the user/],
    [
      'database of ClickHouse',
      () => worker({ CLICKHOUSE_DATABASE: 'nowhere' }),
      /clickhouse: the database nowhere has no schema/,
    ],
    ['bucket', () => worker({ S3_BUCKET: 'nowhere' }), /object store refuses .* bucket/],
    ['key of the bucket', () => worker({ AWS_SECRET_ACCESS_KEY: 'wrong' }), /object store refuses the credentials/],
    ['address of Redis', () => worker({ REDIS_URL: 'redis://127.0.0.1:1' }), /redis of the queues is not connected/],
    [
      'clock',
      () => ({
        script: 'ingest/main.ts',
        settings: { NODE_OPTIONS: `--import=data:text/javascript,${SHIFTED_CLOCK}` },
      }),
      /the clock of this process is 7\d{3} s ahead/,
    ],
  ])('a process with a wrong %s is not ready, and names it', async (_, started, reason) => {
    const { script, settings } = started()
    await untilNotReady(script, settings, reason)
    await clients.untilServed(SIGN_DEADLINE_MS)
  })

  it('nothing that was acknowledged is lost or stored twice', async () => {
    await clients.stop()
    const { ledger, builds } = clients
    for (const build of builds.sent)
      if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
    console.log(`ledger: ${JSON.stringify(ledger.summary())}, answers: ${JSON.stringify(ledger.answers())}`)
    await untilSettled(installation, SETTLE_DEADLINE_MS)
    expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
    expect(installation.unexpectedEnds()).toEqual([])
  })
})

const SHIFTED_CLOCK = encodeURIComponent(`const now = Date.now; Date.now = () => now() + ${AHEAD_MS}`)

const processes = () => [...installation.edges, ...installation.workers]
const servers = () => Object.values(installation.servers)
const firstWorker = () => installation.workers[0]?.member.pid ?? 0
const command = (query: string) => installation.clickhouse.command({ query })

async function count(query: string): Promise<number> {
  const answer = await installation.clickhouse.query({ query: `SELECT (${query}) AS n`, format: 'JSONEachRow' })
  const [row] = await answer.json<{ n: string }>()
  return Number(row?.n)
}

/** Waits until a request that is sent from now on has one of these answers. */
function untilAnswered(...answers: readonly string[]): Promise<unknown> {
  const { entries } = clients.ledger
  const before = entries.length
  const isSeen = () => entries.slice(before).some(({ answer }) => answers.includes(answer))
  return until(`an answer ${answers.join(' or ')}`, isSeen, { deadlineMs: SIGN_DEADLINE_MS })
}

/** Waits until spans that are sent from now on are stored. */
async function untilStored(): Promise<void> {
  const { entries } = clients.ledger
  const before = entries.length
  const isSent = () =>
    entries
      .slice(before)
      .find(({ table, fate, outcome }) => table === 'spans' && fate === 'stored' && outcome === 'acknowledged')
  const { rows } = await until('spans are acknowledged', isSent, { deadlineMs: SIGN_DEADLINE_MS })
  const stored = `SELECT count() FROM spans WHERE name = '${rows[0]}'`
  await until('they are stored', async () => (await count(stored)) > 0, { deadlineMs: SIGN_DEADLINE_MS, everyMs: 200 })
}

function withUser(name: string): string {
  const url = new URL(installation.servers.clickhouse.service.url)
  url.username = name
  return url.href
}

/** Starts a process with a wrong setting, waits until `/readyz` names it, and kills the process. */
async function untilNotReady(script: string, wrong: Readonly<Record<string, string>>, reason: RegExp): Promise<void> {
  const [port, grpcPort, adminPort] = [await freePort(), await freePort(), await freePort()]
  const { servers: running, s3 } = installation
  const started = await startChild({
    command: process.execPath,
    args: [script],
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      LOG_LEVEL: 'fatal',
      REDIS_URL: running.redis.service.url,
      DIRECTORY_REDIS_URL: running.directory.service.url,
      CLICKHOUSE_URL: running.clickhouse.service.url,
      ...s3Settings(s3),
      INGEST_PORT: String(port),
      INGEST_GRPC_PORT: String(grpcPort),
      INGEST_ADMIN_PORT: String(adminPort),
      WORKERS_ADMIN_PORT: String(adminPort),
      ...wrong,
    },
    log: line => process.env.STACK_LOG && console.log(line),
  })
  let named: unknown
  const isNamed = async () => {
    const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => undefined)
    named = await response?.text()
    return response?.status === 503 && reason.test(String(named))
  }
  try {
    await until(`/readyz matches ${reason}`, isNamed, { deadlineMs: SIGN_DEADLINE_MS }).catch(cause => {
      throw new Error(`/readyz has ${named} instead of ${reason}`, { cause })
    })
  } finally {
    await started.kill9()
  }
}
