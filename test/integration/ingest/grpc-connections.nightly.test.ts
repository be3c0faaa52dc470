import { type ClientHttp2Session, connect } from 'node:http2'
import { status } from '@grpc/grpc-js'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { EXPORT_METHODS, GrpcClient } from '../../support/clients/grpc-client.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

/** The bounds of docs/api/otlp.md#grpc. */
const MOST = 2_000
const UNUSED_MS = 20_000

const url = `${sharedServices().redisUrl}/8`
let redis: Redis
let edge: TestEdge
let publicKey: string

beforeAll(async () => {
  redis = new Redis(url)
  await redis.flushdb()
  publicKey = await issueKey(createDirectory(redis))
  edge = await startEdge(url)
})
afterAll(async () => {
  await edge?.stop()
  redis?.disconnect()
})

it('connections are bounded, those without a call are closed, and one with a call stays', async () => {
  const address = `http://127.0.0.1:${edge.grpcPort}`
  const client = new GrpcClient(address)
  const exportOnce = () => client.call(EXPORT_METHODS.traces, Buffer.alloc(0), { 'x-service-public-key': publicKey })
  expect((await exportOnce()).code).toBe(status.OK)

  const sessions: ClientHttp2Session[] = []
  for (let i = 1; i < MOST; i++) sessions.push(await opened(address))
  expect(await isDropped(address)).toBe(true)
  // The connection that was there first is still served.
  expect((await exportOnce()).code).toBe(status.OK)

  const areClosed = () => sessions.every(({ closed }) => closed)
  expect(areClosed()).toBe(false)
  await until('connections without a call are closed', areClosed, { deadlineMs: 2 * UNUSED_MS })
  expect((await exportOnce()).code).toBe(status.OK)
  client.close()
})

/** Resolves when the server has accepted the connection and sent its settings. */
function opened(address: string): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(address)
    session.on('error', reject)
    session.once('remoteSettings', () => resolve(session))
  })
}

/** Resolves with whether the server closes a connection before it sends anything. */
function isDropped(address: string): Promise<boolean> {
  return new Promise(resolve => {
    const session = connect(address)
    session.on('error', () => resolve(true))
    session.once('close', () => resolve(true))
    session.once('remoteSettings', () => resolve(false))
  })
}
