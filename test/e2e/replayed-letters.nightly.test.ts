import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { signLocalSession } from '../../shared/ids/local-session-token.ts'
import { connectLetters, traceFrame } from '../support/dead-letters.ts'
import { rounds } from '../support/length.ts'
import { type Answer, call } from '../support/services/api.ts'
import { s3Settings } from '../support/services/services.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

/** How many dead letters are replayed twice at once while processes are killed. */
const LETTERS = rounds(1_500)
const KILLS = 10

let stack: Stack
let clickhouse: ClickHouseClient
let letters: ReturnType<typeof connectLetters>

beforeAll(async () => {
  stack = await startStack({ JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' })
  const { clickhouseUrl, redisUrl } = stack.services
  clickhouse = createClickHouse({ url: clickhouseUrl, database: 'penstock' })
  letters = connectLetters(stack.services, redisUrl, clickhouse)
})

afterAll(async () => {
  await letters?.close()
  await clickhouse?.close()
  await stack?.stop()
})

it(`stores ${LETTERS} dead letters once that are replayed twice at once while workers, API and commands are killed`, async () => {
  const { workspaceId, surfaceId } = stack.secrets
  const surface = { workspaceId, surfaceId }
  for (let from = 0; from < LETTERS; from += 250) {
    const frames = Array.from({ length: Math.min(250, LETTERS - from) }, (_, i) =>
      traceFrame(surface, exportOf(from + i)),
    )
    await letters.refuse('traces', `job-${from}`, frames)
  }
  await until('the letters are indexed', async () => (await count('dead_letters')) === LETTERS, { deadlineMs: 120_000 })

  let isDone = false
  const bySettled = async () => count("dead_letters WHERE outcome = 'stored'")
  const clients = [replayByApi(() => isDone), replayByCommand(() => isDone)]
  for (let kill = 0; kill < KILLS; kill++) {
    const before = await bySettled()
    const target = Math.min(LETTERS, Math.floor(((kill + 1) * LETTERS) / (2 * KILLS)))
    await until('some are stored', async () => (await bySettled()) >= Math.max(before, target), { deadlineMs: 120_000 })
    if (kill % 3 === 0) {
      await stack.workers.kill9()
      await stack.workers.restart()
    } else if (kill % 3 === 1) {
      await stack.api.kill9()
      await stack.api.restart()
    } else running?.kill('SIGKILL')
  }
  await until('all are stored', async () => (await bySettled()) >= LETTERS, { deadlineMs: 170_000 })
  isDone = true
  await Promise.all(clients)
  const [spans] = await rows<{ rows: string; names: string }>(
    'SELECT count() AS rows, uniqExact(name) AS names FROM spans',
  )
  expect({ rows: Number(spans?.rows), names: Number(spans?.names) }).toEqual({ rows: LETTERS, names: LETTERS })
  expect(await count("dead_letters WHERE outcome = 'stored'")).toBe(LETTERS)
  expect(await count('ingest_log WHERE toUnixTimestamp64Milli(replayed_at) > 0 AND length(dead_lettered) > 0')).toBe(0)
}, 400_000)

function exportOf(number: number): Buffer {
  const span = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), name: `letter ${number}` }
  return Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }))
}

async function rows<T>(query: string): Promise<T[]> {
  return (await clickhouse.query({ query, format: 'JSONEachRow' })).json<T>()
}

async function count(from: string): Promise<number> {
  const [row] = await rows<{ n: string }>(`SELECT count() AS n FROM ${from}`)
  return Number(row?.n)
}

/** Replays all letters again and again, step by step, and repeats a step whose answer was lost. */
async function replayByApi(isDone: () => boolean): Promise<void> {
  let cursor: string | null = null
  while (!isDone()) {
    const { authPrivateKey: privateKey, userId, workspaceSlug: org } = stack.secrets
    const issuedAt = Math.floor(Date.now() / 1_000)
    const bearer = await signLocalSession({ privateKey, userId, org, issuedAt, expiresAt: issuedAt + 600 })
    const body: object = { filter: {}, limit: 100, ...(cursor !== null && { cursor }) }
    const answer: Answer | undefined = await call(stack.apiUrl, 'POST /v3/dead-letters/replay', { bearer, body }).catch(
      () => undefined,
    )
    if (answer?.status === 200) cursor = (answer.body as { nextCursor: string | null }).nextCursor
    else await new Promise(resolve => setTimeout(resolve, 50))
  }
}

let running: ReturnType<typeof spawn> | undefined

/** Runs the command again and again, as an operator would after it has ended early. */
async function replayByCommand(isDone: () => boolean): Promise<void> {
  const { services, secrets } = stack
  while (!isDone()) {
    running = spawn(
      process.execPath,
      ['cli/main.ts', 'dead-letters', 'replay', '--workspace', secrets.workspaceId, '--all'],
      {
        env: {
          PATH: process.env.PATH,
          REDIS_URL: services.redisUrl,
          DIRECTORY_REDIS_URL: services.redisUrl,
          CLICKHOUSE_URL: services.clickhouseUrl,
          ...s3Settings(services.s3),
        },
        stdio: 'ignore',
      },
    )
    await once(running, 'exit')
  }
}
