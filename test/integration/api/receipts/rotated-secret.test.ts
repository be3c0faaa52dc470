import { expect, it } from 'vitest'
import { DAY_MS } from '../../../../schemas/units.ts'
import { readReceiptSecrets } from '../../../../shared/directory/receipt-secret.ts'
import { runDirectoryCli } from '../../../support/clients/run-cli.ts'
import { startEdge } from '../../../support/services/edge.ts'
import { ask, browse, objectStore, publicKey, receiptOf, redis, redisUrl } from './fixture.ts'

/** The retention of the installation. */
const RETENTION_DAYS = 30

async function rotate(now = Date.now()): Promise<string> {
  const env = { DIRECTORY_REDIS_URL: redisUrl, RETENTION_DAYS: String(RETENTION_DAYS) }
  const { code, stdout, stderr } = await runDirectoryCli(['directory', 'rotate-receipt-secret'], {
    env,
    now: () => now,
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

/** Sends a heartbeat to an edge that has started after the rotation, and returns its receipt. */
async function sendToNextEdge(): Promise<string | null> {
  const edge = await startEdge(redisUrl, objectStore)
  const headers = { 'content-type': 'application/json', 'x-service-public-key': publicKey }
  const response = await fetch(`${edge.baseUrl}/v3/session`, { method: 'POST', headers, body: '{"sessionId":"s"}' })
  await response.arrayBuffer()
  await edge.stop()
  expect(response.status).toBe(200)
  return response.headers.get('x-receipt-id')
}

/** The part of an id that depends on the secret and the surface alone. */
const tagOf = (id: string | null) => id?.slice('rct_'.length + 28, 'rct_'.length + 44)

it('receipts stay readable when the secret is replaced, until the last one of it is no longer retained', async () => {
  const before = await browse('POST /v3/session', '{"sessionId":"s"}')
  const replacedAt = Date.now()
  expect(await rotate(replacedAt)).toContain('receipts of 1 earlier secret stay readable')
  expect(await receiptOf(before)).toMatchObject({ kind: 'sessions' })
  // An edge that has not noticed it yet still uses the old secret.
  expect(await receiptOf(await browse('POST /v3/session', '{"sessionId":"s"}'))).toMatchObject({ kind: 'sessions' })

  const next = await sendToNextEdge()
  expect(tagOf(next)).not.toBe(tagOf(before.receiptId))
  expect(await ask(next)).toMatchObject({ status: 200 })

  expect(await rotate(replacedAt + RETENTION_DAYS * DAY_MS)).toContain('receipts of 2 earlier secrets')
  expect(await ask(before.receiptId)).toMatchObject({ status: 200 })
  expect(await rotate(replacedAt + (RETENTION_DAYS + 2) * DAY_MS)).toContain('receipts of 2 earlier secrets')
  expect(await ask(before.receiptId)).toMatchObject({ status: 404 })
  expect(await ask(next)).toMatchObject({ status: 200 })
})

it('no secret is forgotten when several rotate at once', async () => {
  const known = await readReceiptSecrets(redis)
  await Promise.all([rotate(), rotate(), rotate()])
  const left = (await readReceiptSecrets(redis)).map(secret => secret.toString('hex'))
  expect(left).toHaveLength(known.length + 3)
  expect(new Set(left).size).toBe(left.length)
  expect(left).toEqual(expect.arrayContaining(known.map(secret => secret.toString('hex'))))
})
