import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { pipeline } from 'node:stream'
import { createServer } from 'node:tls'
import { Redis } from 'ioredis'
import { freePort } from '../../../deploy/local/ports.ts'
import type { ServiceAddresses } from '../services/services.ts'
import type { Authority, CertificateFiles } from './certificates.ts'

/** A server that ends TLS in front of another one. */
export interface TlsTerminator {
  readonly port: number
  close(): Promise<void>
}

/** Starts a server that ends TLS in front of a server of this machine. */
export async function startTlsTerminator(target: string, files: CertificateFiles): Promise<TlsTerminator> {
  const { hostname, port } = new URL(target)
  const server = createServer({ cert: readFileSync(files.certificate), key: readFileSync(files.key) }, client => {
    const upstream = connect({ host: hostname, port: Number(port) })
    pipeline(client, upstream, client, () => {
      client.destroy()
      upstream.destroy()
    })
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Opens a TLS port of a running Redis, which requires a certificate of the authority from its clients. Returns the port. */
export async function openTlsPort(redisUrl: string, authority: Authority, files: CertificateFiles): Promise<number> {
  const port = await freePort()
  const redis = new Redis(redisUrl)
  const settings = {
    'tls-cert-file': files.certificate,
    'tls-key-file': files.key,
    'tls-ca-cert-file': authority.file,
    'tls-auth-clients': 'yes',
    'tls-port': String(port),
  }
  await redis.call('CONFIG', 'SET', ...Object.entries(settings).flat())
  redis.disconnect()
  return port
}

/** Returns the same address with another protocol and port, at the name for which certificates are issued. */
export function encrypted(url: string, protocol: string, port: number, host = 'localhost'): string {
  return url.replace(/^\w+:\/\/((?:[^@/]*@)?)[^/]+/, (_, login: string) => `${protocol}//${login}${host}:${port}`)
}

/** Stores that are reached with TLS alone. */
export interface EncryptedStores {
  /** Settings of processes that reach them, `NODE_EXTRA_CA_CERTS` included. */
  readonly settings: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Puts TLS in front of running stores: that of Redis itself, with a client's certificate, and terminators for the others. */
export async function encryptStores(stores: ServiceAddresses, authority: Authority): Promise<EncryptedStores> {
  const [server, client] = [authority.issue('localhost'), authority.issue('penstock-client')]
  const redisPort = await openTlsPort(stores.redisUrl, authority, server)
  const terminators = await Promise.all(
    [stores.clickhouseUrl, stores.s3.endpoint].map(url => startTlsTerminator(url, server)),
  )
  const [clickhouse, s3] = terminators.map(({ port }) => port)
  const files = new URLSearchParams({ ca: authority.file, cert: client.certificate, key: client.key })
  const redisUrl = `${encrypted(stores.redisUrl, 'rediss:', redisPort)}?${files}`
  return {
    settings: {
      NODE_EXTRA_CA_CERTS: authority.file,
      REDIS_URL: redisUrl,
      DIRECTORY_REDIS_URL: redisUrl,
      CLICKHOUSE_URL: encrypted(stores.clickhouseUrl, 'https:', clickhouse ?? 0),
      S3_ENDPOINT: encrypted(stores.s3.endpoint, 'https:', s3 ?? 0),
    },
    async close() {
      await Promise.all(terminators.map(terminator => terminator.close()))
    },
  }
}
