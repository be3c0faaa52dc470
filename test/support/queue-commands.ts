import { expect } from 'vitest'
import type { QueueName } from '../../schemas/queues/names.ts'
import { newId } from '../../shared/directory/directory.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { runCli } from './clients/run-cli.ts'
import { connectDatabase } from './cluster/connect.ts'
import { connectLetters, traceFrame } from './dead-letters.ts'
import { startPools, type TestPools } from './services/pools.ts'
import { sharedServices } from './services/shared-services.ts'
import { createTestDatabase } from './services/test-database.ts'

/** A line of JSON that a command has printed. */
type PrintedLine = Readonly<Record<string, unknown>>

const POOLS: readonly QueueName[] = [
  ...(['traces', 'logs', 'exceptions', 'span-stats', 'replay', 'replay-chunks'] as const),
  ...(['receipts', 'dead-letters', 'dead-letter-index'] as const),
]

/** Queues of a test in a database of Redis of their own, pools that can be started and stopped, and `penstock queues`. */
export async function connectQueueCommands(name: string, redisDatabase: number) {
  const services = sharedServices()
  const redisUrl = `${services.redisUrl}/${redisDatabase}`
  const database = await createTestDatabase(services.clickhouseUrl, `${name}_${process.pid}`)
  const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
  const letters = connectLetters(services, redisUrl, clickhouse)
  const env = { REDIS_URL: redisUrl, DIRECTORY_REDIS_URL: redisUrl }
  let surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  let pools: TestPools | undefined

  const run = (...words: string[]) => runCli(['queues', ...words], { env })

  /** Runs a command that must succeed, and returns the lines of JSON that it prints. */
  async function lines(...words: string[]): Promise<PrintedLine[]> {
    const { code, stdout, stderr } = await run(...words, '--json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as PrintedLine]))
  }

  async function stop(): Promise<void> {
    await pools?.stop()
    pools = undefined
  }

  return {
    ...{ env, letters, database, redis: letters.redis, run, lines, stop },
    /** Surface of the requests of the test. */
    surface: () => surface,
    /** Empties the queues, and makes another surface. */
    async reset(): Promise<void> {
      await letters.redis.flushdb()
      surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
    },
    start(settings: Record<string, string> = {}): void {
      pools ??= startPools(POOLS, { ...services, redisUrl }, database.name, settings)
    },
    rowOf: async (queue: QueueName) => (await lines()).find(row => row.queue === queue),
    /** Puts a job with one request for each span into the queue of traces. Returns its id. */
    async enqueue(...names: string[]): Promise<string> {
      const jobId = newJobId()
      const frames = names.map(span => traceFrame(surface, exportOf(span)))
      await letters.enqueue('traces', jobId, frames)
      return jobId
    },
    /** Waits until nothing is in the queues of the pools. */
    untilDone: () => letters.untilDone(...POOLS),
    async spanNames(): Promise<string[]> {
      const rows = await database.rows<{ name: string }>(
        `SELECT name FROM spans WHERE workspace_id = '${surface.workspaceId}' ORDER BY name`,
      )
      return rows.map(({ name: span }) => span)
    },
    async close(): Promise<void> {
      await stop()
      await letters.close()
      await clickhouse.close()
      await database.drop()
    },
  }
}

function exportOf(name: string): Buffer {
  const span = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), name }
  return Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }))
}
