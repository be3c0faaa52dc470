import { connect, constants } from 'node:http2'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { status } from '@grpc/grpc-js'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { EXPORT_METHODS, GrpcClient } from '../../support/clients/grpc-client.ts'
import { deletePayloads, queuedFrames } from '../../support/queued-payloads.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const url = `${sharedServices().redisUrl}/8`
let redis: Redis
let edge: TestEdge
let client: GrpcClient
let publicKey: string

beforeAll(async () => {
  redis = connectConsumer(url, pino({ level: 'silent' }))
  await redis.flushdb()
  publicKey = await issueKey(createDirectory(redis))
  edge = await startEdge(url)
  client = new GrpcClient(`http://127.0.0.1:${edge.grpcPort}`)
})
beforeEach(async () => {
  for (const signal of ['traces', 'logs', 'metrics'] as const) await deletePayloads(redis, signal)
})
afterAll(async () => {
  client?.close()
  await edge?.stop()
  redis?.disconnect()
})

/** A message with one field, like an export with one resource. */
const message = (bytes: number) =>
  Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(Buffer.alloc(bytes, 7)).finish())
const EXPORT = message(100)
const withKey = () => ({ 'x-service-public-key': publicKey })
const basic = (user: string, password: string) => `Basic ${btoa(`${user}:${password}`)}`

describe('an export over gRPC', () => {
  it.each(['traces', 'logs', 'metrics'] as const)('of %s is on disk as it was sent, with a receipt', async signal => {
    const { code, message: answer, trailers } = await client.call(EXPORT_METHODS[signal], EXPORT, withKey())
    expect([code, answer]).toEqual([status.OK, Buffer.alloc(0)])
    expect(trailers.get('x-receipt-id')).toEqual([expect.stringMatching(/^rct_/)])
    const [frame, ...more] = await queuedFrames(redis, signal)
    expect(more).toEqual([])
    expect(frame).toMatchObject({ workspaceId: 'ws_1', surfaceId: 'srf_1', contentType: 'application/x-protobuf' })
    expect([frame?.contentEncoding, frame?.body]).toEqual(['identity', EXPORT])
  })

  it('is kept compressed as it was sent', async () => {
    const compressing = new GrpcClient(`http://127.0.0.1:${edge.grpcPort}`, { isGzip: true })
    const { code } = await compressing.call(EXPORT_METHODS.traces, EXPORT, withKey())
    compressing.close()
    expect(code).toBe(status.OK)
    const [frame] = await queuedFrames(redis, 'traces')
    expect([frame?.contentEncoding, frame?.body.subarray(0, 2)]).toEqual(['gzip', Buffer.from([0x1f, 0x8b])])
  })

  it('is accepted whole when it arrives in many frames', async () => {
    const large = message(3 * MIB)
    expect((await client.call(EXPORT_METHODS.traces, large, withKey())).code).toBe(status.OK)
    expect((await queuedFrames(redis, 'traces'))[0]?.body).toEqual(large)
    expect(edge.heldBodyBytes).toBe(0)
  })

  it('is accepted when it is one of many at once', async () => {
    const calls = Array.from({ length: 300 }, () => client.call(EXPORT_METHODS.traces, EXPORT, withKey()))
    expect(new Set((await Promise.all(calls)).map(({ code }) => code))).toEqual(new Set([status.OK]))
    expect(await queuedFrames(redis, 'traces')).toHaveLength(300)
  })

  it('is accepted when it is empty', async () => {
    expect((await client.call(EXPORT_METHODS.traces, Buffer.alloc(0), withKey())).code).toBe(status.OK)
    expect(await queuedFrames(redis, 'traces')).toEqual([])
  })

  it.each<[string, () => Record<string, string>]>([
    ['a Bearer token', () => ({ authorization: `Bearer ${publicKey}` })],
    ['the password of Basic', () => ({ authorization: basic('otlp', publicKey) })],
    ['api-key', () => ({ 'api-key': publicKey })],
    ['x-api-key', () => ({ 'x-api-key': publicKey })],
  ])('takes the key as %s', async (_, metadata) => {
    expect((await client.call(EXPORT_METHODS.traces, EXPORT, metadata())).code).toBe(status.OK)
  })
})

describe('a call is refused with a reason, and the next one is served', () => {
  const NO_METHOD = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export'
  it.each<[string, string, Buffer, Record<string, string>, number, RegExp]>([
    ['no key', EXPORT_METHODS.traces, EXPORT, { 'x-service-public-key': '' }, status.UNAUTHENTICATED, /required/],
    ['an unknown key', EXPORT_METHODS.traces, EXPORT, { 'x-service-public-key': generateKey('public') }, 16, /unknown/],
    ['a truncated message', EXPORT_METHODS.traces, EXPORT.subarray(0, 50), {}, status.INVALID_ARGUMENT, /protobuf/],
    ['21 MiB', EXPORT_METHODS.traces, Buffer.alloc(21 * MIB), {}, status.RESOURCE_EXHAUSTED, /20 MiB/],
    ['an unknown method', NO_METHOD, EXPORT, {}, status.UNIMPLEMENTED, /no such method/],
  ])('%s', async (_, path, body, metadata, code, details) => {
    const outcome = await client.call(path, body, { ...withKey(), ...metadata })
    expect([outcome.code, outcome.details]).toEqual([code, expect.stringMatching(details)])
    expect(await queuedFrames(redis, 'traces')).toEqual([])
    expect((await client.call(EXPORT_METHODS.traces, EXPORT, withKey())).code).toBe(status.OK)
  })

  it.each<[string, Buffer, Record<string, string>, string]>([
    ['an unknown encoding', Buffer.from([1, 0, 0, 0, 1, 7]), { 'grpc-encoding': 'snappy' }, '12'],
    ['no encoding of a compressed message', Buffer.from([1, 0, 0, 0, 1, 7]), {}, '3'],
    ['no message', Buffer.alloc(0), {}, '3'],
    ['half a message', Buffer.from([0, 0, 0, 0, 9, 7]), {}, '3'],
    ['two messages', Buffer.alloc(10), {}, '3'],
    ['an unknown first byte', Buffer.from([2, 0, 0, 0, 0]), {}, '3'],
    ['a deadline that has passed', Buffer.alloc(5), { 'grpc-timeout': '1n' }, '4'],
  ])('%s', async (_, bytes, headers, code) => {
    expect((await rawCall(bytes, headers))['grpc-status']).toBe(code)
  })

  it('has a delay while the surface is over its share', async () => {
    const small = await startEdge(url, { QUEUE_MAX_COST: '1' })
    const busy = new GrpcClient(`http://127.0.0.1:${small.grpcPort}`)
    const { code, trailers } = await busy.call(EXPORT_METHODS.traces, EXPORT, withKey())
    busy.close()
    await small.stop()
    expect(code).toBe(status.UNAVAILABLE)
    const [details] = trailers.get('grpc-status-details-bin')
    expect(String(details)).toContain('google.rpc.RetryInfo')
  })
})

describe('a call that is broken off', () => {
  it('in the middle of its message frees its bytes', async () => {
    const session = connect(`http://127.0.0.1:${edge.grpcPort}`)
    const stream = session.request(headersOf({}))
    stream.on('error', () => {})
    stream.write(Buffer.concat([Buffer.from([0, 0, 1, 0, 0]), Buffer.alloc(30_000)]))
    await until('its bytes are there', () => edge.heldBodyBytes > 0)
    stream.close(constants.NGHTTP2_CANCEL)
    await until('its bytes are freed', () => edge.heldBodyBytes === 0)
    session.destroy()
  })
})

describe('the health of the edge', () => {
  const HEALTH = '/grpc.health.v1.Health/Check'
  const named = (service: string) => Buffer.from([0x0a, service.length, ...Buffer.from(service)])
  it.each(['', 'opentelemetry.proto.collector.trace.v1.TraceService'])('is serving: "%s"', async service => {
    const { code, message: answer } = await client.call(HEALTH, service === '' ? Buffer.alloc(0) : named(service))
    expect([code, answer]).toEqual([status.OK, Buffer.from([8, 1])])
  })
  it('is not known of other services', async () => {
    expect((await client.call(HEALTH, named('shop.Cart'))).code).toBe(status.NOT_FOUND)
  })
})

it('an edge that stops answers the calls in flight, and asks its clients to leave', async () => {
  const stopping = await startEdge(url)
  const leaving = new GrpcClient(`http://127.0.0.1:${stopping.grpcPort}`)
  const calls = Array.from({ length: 50 }, () => leaving.call(EXPORT_METHODS.traces, EXPORT, withKey()))
  await until('some are on disk', async () => (await queuedFrames(redis, 'traces')).length > 0)
  await stopping.stop()
  const codes = (await Promise.all(calls)).map(({ code }) => code)
  leaving.close()
  expect(await queuedFrames(redis, 'traces')).toHaveLength(codes.filter(code => code === status.OK).length)
})

function headersOf(headers: Record<string, string>) {
  return {
    ...{ ':method': 'POST', ':path': EXPORT_METHODS.traces, 'content-type': 'application/grpc', te: 'trailers' },
    ...{ ...withKey(), ...headers },
  }
}

/** Sends the bytes of a call as they are, and returns the headers and trailers of its response. */
function rawCall(bytes: Buffer, headers: Record<string, string>): Promise<Record<string, unknown>> {
  const session = connect(`http://127.0.0.1:${edge.grpcPort}`)
  const stream = session.request(headersOf(headers))
  stream.end(bytes)
  stream.resume()
  return new Promise((resolve, reject) => {
    let seen: Record<string, unknown> = {}
    const see = (more: Record<string, unknown>) => {
      seen = { ...seen, ...more }
    }
    stream.on('response', see)
    stream.on('trailers', see)
    stream.on('error', reject)
    stream.on('close', () => {
      session.destroy()
      resolve(seen)
    })
  })
}
