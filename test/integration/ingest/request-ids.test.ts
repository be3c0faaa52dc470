import { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { call, putWorkspace, signToken, startApi } from '../../support/services/api.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`

/** Starts a log whose lines can be searched by the id of a request. */
function openLog() {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  return { logger, of: (requestId: string | null) => lines.filter(line => line.includes(`"requestId":"${requestId}"`)) }
}

it('a request of the edge that could not be stored, or whose key could not be looked up, is in the log by its id', async () => {
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  const log = openLog()
  const edge = await startEdge(redisUrl, {}, log.logger)
  const send = (key: string, path = '/drain/v1/traces') =>
    call(edge.baseUrl, `POST ${path}`, {
      headers: { 'x-service-public-key': key, 'x-request-id': 'checkout-17', 'content-type': 'application/json' },
      body: '{"resourceSpans":[]}',
    })
  const key = await issueKey(createDirectory(redis))
  expect((await send(key)).status).toBe(200)

  const broken = generateKey('public')
  await redis.rpush(directoryKeys.credential(digestOf(broken)), 'x')
  const unchecked = await send(broken)
  expect([unchecked.status, unchecked.headers.get('x-request-id')]).toEqual([503, 'checkout-17'])
  expect(log.of('checkout-17').join()).toContain('a key could not be looked up')

  await redis.call('CLIENT', 'PAUSE', '1500', 'ALL')
  const late = await send(key)
  expect(late.status).toBe(503)
  expect(log.of(late.headers.get('x-request-id')).join()).toContain('a request could not be stored')
  await redis.ping()
  await edge.stop()
  redis.disconnect()
})

it('a request of the API that fails is in the log by its id', async () => {
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  const log = openLog()
  const [workspaceId, userId] = [newId('ws'), 'user_1']
  await putWorkspace(redisUrl, { id: workspaceId, slug: 'acme', userId })
  const api = await startApi({ ...services, redisUrl }, 'default', {}, Date.now, log.logger)
  const bearer = await signToken({ org: 'acme' })
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  const failed = await call(api.baseUrl, 'GET /v3/findings', { bearer, headers })
  expect([failed.status, failed.headers.get('x-request-id')]).toEqual([503, '0af7651916cd43dd8448eb211c80319c'])
  expect(log.of('0af7651916cd43dd8448eb211c80319c').join()).toContain('an operation failed')

  await redis.set(directoryKeys.member(workspaceId, userId), '{}')
  const unchecked = await call(api.baseUrl, 'GET /v3/surfaces', { bearer })
  expect(unchecked.status).toBe(503)
  expect(log.of(unchecked.headers.get('x-request-id')).join()).toContain('a credential could not be checked')
  await api.stop()
  redis.disconnect()
})
