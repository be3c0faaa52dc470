import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { COMMIT_BYTES, ReceiptIds, receiptSeal } from '../../../shared/ids/receipt.ts'
import { newJobId } from '../../../shared/queue/queue.ts'
import { runCli } from '../../support/clients/run-cli.ts'
import { clusterSettings, connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { putWorkspace } from '../../support/services/api.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`
const QUEUES: readonly QueueName[] = ['traces', 'exceptions', 'receipts', 'dead-letters', 'dead-letter-index']
const database = await createTestDatabase(services.clickhouseUrl, `cli_receipt_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
const env = {
  ...{ REDIS_URL: redisUrl, DIRECTORY_REDIS_URL: redisUrl, CLICKHOUSE_URL: services.clickhouseUrl },
  ...clusterSettings(services.clickhouseUrl),
  CLICKHOUSE_DATABASE: database.name,
  ...s3Settings(services.s3),
}
let pools: TestPools | undefined
let surface: { workspaceId: string; surfaceId: string }
let slug: string

beforeEach(async () => {
  await letters.redis.flushdb()
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  slug = surface.workspaceId.replace('_', '-')
  await putWorkspace(redisUrl, { id: surface.workspaceId, slug })
})
afterEach(async () => {
  await pools?.stop()
  pools = undefined
})
afterAll(async () => {
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

const run = (...words: string[]) => runCli(words, { env })

async function shown(id: string): Promise<unknown> {
  const { code, stdout, stderr } = await run('receipt', id, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Puts a request into the queue of traces. Returns the id of its receipt. */
async function accept(body: string, receivedAtMs = Date.now()): Promise<string> {
  const secret = await ensureReceiptSecret(letters.redis)
  const frame = traceFrame(surface, Buffer.from(body), { receivedAtMs })
  await letters.enqueue('traces', newJobId(), [frame])
  const receipt = Buffer.from(frame.receipt ?? '', 'latin1')
  const ids = new ReceiptIds(receipt.subarray(0, COMMIT_BYTES))
  return ids.write(receipt.readUInt32BE(COMMIT_BYTES), receiptSeal(secret, surface)).toString()
}

const SPAN = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), name: 'a' }
const EXPORT = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [SPAN] }] }] })

it('of an operator states what became of a request of any workspace', async () => {
  const [stored, refused] = [await accept(EXPORT), await accept('not JSON')]
  expect(await shown(stored)).toMatchObject({
    status: 'queued',
    kind: 'traces',
    workspace: slug,
    outcomes: [],
    ...surface,
  })
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  await letters.untilDone(...QUEUES)
  expect(await shown(stored)).toMatchObject({ status: 'stored', outcomes: [{ status: 'stored', rejected: [] }] })
  expect(await shown(refused)).toMatchObject({
    status: 'dead_lettered',
    outcomes: [
      { status: 'dead_lettered', reason: expect.stringContaining('invalid_json'), objectKey: expect.any(String) },
    ],
  })
  expect((await run('receipt', refused)).stdout).toMatch(/: dead_lettered\n {2}a request of traces of the surface srf_/)
})

it('is missing if everything of its time is settled and it has no outcome', async () => {
  const id = await accept(EXPORT, Date.now() - 60_000)
  await letters.redis.del(...(await letters.redis.keys('penstock:{traces.0}*')))
  expect(await shown(id)).toMatchObject({ status: 'missing' })
  expect(await run('receipt', id.slice(0, -1) + (id.endsWith('0') ? '1' : '0'))).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no workspace'),
  })
})

it('watermarks of all surfaces and of one stand still while a request is not settled', async () => {
  const { workspaceId, surfaceId } = surface
  const createdAt = new Date().toISOString()
  await createDirectory(letters.redis).putSurface({ version: 1, id: surfaceId, workspaceId, name: 'Shop', createdAt })
  const of = async (kind: string, ...words: string[]) => {
    const { code, stdout, stderr } = await run('watermarks', '--json', ...words)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const marks = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { kind: string; settledBefore: string })
    return marks.find(mark => mark.kind === kind)
  }
  await accept(EXPORT)
  const ofSurface = ['--workspace', slug, '--surface', surfaceId]
  const before = [await of('traces'), await of('traces', ...ofSurface)]
  expect(await of('logs', ...ofSurface)).toMatchObject({ lagSeconds: 0 })
  expect([await of('traces'), await of('traces', ...ofSurface)].map(mark => mark?.settledBefore)).toEqual(
    before.map(mark => mark?.settledBefore),
  )
  const table = await run('watermarks')
  expect(table.stdout).toMatch(/^KIND +SETTLED BEFORE +LAG\ntraces +20\S+Z +\d+ s\n/)
  const unknown = await run('watermarks', '--workspace', slug, '--surface', newId('srf'))
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining('there is no surface') })
  expect(await run('watermarks', '--surface', surfaceId)).toMatchObject({ code: 2 })
})
