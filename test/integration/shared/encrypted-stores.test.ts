import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectConsumer, connectForTransaction, connectProducer } from '../../../shared/queue/redis.ts'
import { type Authority, createAuthority } from '../../support/proxy/certificates.ts'
import { encrypted, openTlsPort, startTlsTerminator, type TlsTerminator } from '../../support/proxy/encrypted-stores.ts'
import { queuedFrames } from '../../support/queued-payloads.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const dir = mkdtempSync(join(tmpdir(), 'penstock-tls-'))
const trustedBefore = getCACertificates('default')
const terminators: TlsTerminator[] = []
const SILENT = pino({ level: 'silent' })

let authority: Authority
let stranger: Authority
let redisPort: number
/** Parameters of the address of Redis with which a client is accepted. */
let files: Record<'ca' | 'cert' | 'key', string>

beforeAll(async () => {
  authority = createAuthority(join(dir, 'authority'))
  stranger = createAuthority(join(dir, 'stranger'))
  // As NODE_EXTRA_CA_CERTS does, which Node reads only when it starts.
  setDefaultCACertificates([...trustedBefore, authority.pem])
  redisPort = await openTlsPort(services.redisUrl, authority, authority.issue('localhost'))
  const client = authority.issue('client')
  files = { ca: authority.file, cert: client.certificate, key: client.key }
})
afterAll(async () => {
  setDefaultCACertificates(trustedBefore)
  await Promise.all(terminators.map(terminator => terminator.close()))
  const redis = new Redis(services.redisUrl)
  await redis.config('SET', 'tls-port', '0')
  redis.disconnect()
  rmSync(dir, { recursive: true, force: true })
})

const redisAddress = (parameters: Partial<typeof files> = files, host = 'localhost') =>
  `${encrypted(services.redisUrl, 'rediss:', redisPort, host)}/8?${new URLSearchParams(parameters)}`

describe('Redis', () => {
  it.each([
    ['producer', (url: string) => connectProducer(url, 5_000, SILENT)],
    ['transaction', (url: string) => connectForTransaction(url, 5_000, SILENT)],
    ['consumer', (url: string) => connectConsumer(url, SILENT)],
  ])('is reached with a certificate of the client: %s', async (_, connect) => {
    const redis = connect(redisAddress())
    await until('it is connected', () => redis.status === 'ready')
    expect(await redis.ping()).toBe('PONG')
    redis.disconnect()
  })

  it('takes the commits of the edge, small and large', async () => {
    const redis = connectConsumer(redisAddress(), SILENT)
    await redis.flushdb()
    const key = await issueKey(createDirectory(redis))
    const edge = await startEdge(redisAddress())
    const bodies = [200, 6 * MIB].map(bytes => `{"resourceSpans":[],"padding":"${'x'.repeat(bytes)}"}`)
    for (const body of bodies) {
      const headers = { 'x-service-public-key': key, 'content-type': 'application/json' }
      const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })
      expect(response.status).toBe(200)
    }
    const frames = await queuedFrames(redis, 'traces')
    expect(frames.map(frame => Buffer.from(frame.body).toString()).sort()).toEqual(bodies.sort())
    await edge.stop()
    redis.disconnect()
  })

  it.each([
    [
      'a certificate of another authority',
      () => redisAddress({ ...files, ca: stranger.file }),
      /self-signed certificate/,
    ],
    ['a certificate for another name', () => redisAddress(files, '127.0.0.1'), /does not match certificate|altnames/],
    ['a client without a certificate', () => redisAddress({ ca: files.ca }), /certificate required|closed|ECONNRESET/i],
    ['plain text', () => encrypted(services.redisUrl, 'redis:', redisPort), /closed|ECONNRESET|EPIPE/i],
  ])('refuses %s', async (_, address, reason) => {
    const errors: string[] = []
    const redis = connectProducer(address(), 1_000, SILENT)
    redis.on('error', error => errors.push(String(error)))
    redis.on('close', () => errors.push('closed'))
    await until('the connection fails', () => errors.some(error => reason.test(error)))
    expect(redis.status).not.toBe('ready')
    redis.disconnect()
  })
})

/** Uses a server through TLS with a certificate of an authority for a name, and returns the outcome. */
async function throughTls<T>(
  target: string,
  certificate: { by: Authority; name?: string },
  use: (port: number) => Promise<T>,
): Promise<T> {
  const files = certificate.by.issue(certificate.name ?? 'localhost')
  const terminator = await startTlsTerminator(target, files)
  terminators.push(terminator)
  return use(terminator.port)
}

describe('ClickHouse', () => {
  const answer = async (url: string): Promise<string> => {
    const client = createClickHouse({ url })
    try {
      const { stream } = await client.exec({ query: 'SELECT 1' })
      for await (const _ of stream);
      let read = ''
      const signal = AbortSignal.timeout(5_000)
      const query = { query: 'SELECT 2 FORMAT TSV', params: {}, settings: {}, signal }
      await client.reads.read(query, chunk => {
        read += chunk.toString()
      })
      return read.trim()
    } finally {
      await client.close()
    }
  }
  const read = async (url: string): Promise<string> => {
    const client = createClickHouse({ url })
    const query = { query: 'SELECT 2', params: {}, settings: {}, signal: AbortSignal.timeout(5_000) }
    return client.reads.read(query, () => {}).finally(() => client.close())
  }

  it('is reached by the client of inserts and by that of reads', async () => {
    const port = (certificate: { by: Authority }) => throughTls(services.clickhouseUrl, certificate, async at => at)
    expect(await answer(encrypted(services.clickhouseUrl, 'https:', await port({ by: authority })))).toBe('2')
  })

  it.each([
    ['a certificate of another authority', () => ({ by: stranger }), 'https:', /unable to verify/],
    ['a certificate for another name', () => ({ by: authority, name: 'other.test' }), 'https:', /altnames/],
    ['plain text', () => ({ by: authority }), 'http:', /./],
  ])('refuses %s', async (_, certificate, protocol, reason) => {
    await throughTls(services.clickhouseUrl, certificate(), async port => {
      const url = encrypted(services.clickhouseUrl, protocol, port)
      await expect(answer(url)).rejects.toThrow(reason)
      await expect(read(url)).rejects.toThrow(reason)
    })
  })
})

describe('the object store', () => {
  const put = async (endpoint: string): Promise<string> => {
    const objects = createObjectStore({ ...services.s3, endpoint, requestTimeoutMs: 5_000 })
    const key = `tls/${crypto.randomUUID()}`
    try {
      await objects.put(key, Buffer.from('a chunk'), { contentType: 'text/plain' })
      return key
    } finally {
      objects.close()
    }
  }

  it('is reached', async () => {
    await throughTls(services.s3.endpoint, { by: authority }, async port => {
      expect(await put(`https://localhost:${port}`)).toMatch(/^tls\//)
    })
  })

  it.each([
    ['a certificate of another authority', () => ({ by: stranger }), 'https:', /unable to verify/],
    ['a certificate for another name', () => ({ by: authority, name: 'other.test' }), 'https:', /altnames/],
    ['plain text', () => ({ by: authority }), 'http:', /./],
  ])('refuses %s', async (_, certificate, protocol, reason) => {
    await throughTls(services.s3.endpoint, certificate(), async port => {
      await expect(put(`${protocol}//localhost:${port}`)).rejects.toThrow(reason)
    })
  })
})
