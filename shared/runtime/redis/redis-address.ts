import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { PermanentError } from '../errors.ts'

/** Address of a Redis without the names of files, and the options of its TLS. */
interface RedisAddress {
  readonly url: string
  /** Absent for `redis:`, which is plain text. */
  readonly tls?: ConnectionOptions
}

/** Parameters of the URL that name PEM files: who signs the server's certificate, the client's certificate, and its key. */
const FILES = ['ca', 'cert', 'key'] as const

/** Returns the rule that the files of an address break, or undefined. The address may contain a password, so it is not repeated. */
export function faultOfRedisAddress(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  const named = FILES.filter(name => url.searchParams.has(name))
  if (named.length > 0 && url.protocol !== 'rediss:')
    return `the files ${named.join(', ')} need rediss:// instead of redis://`
  if (named.includes('cert') !== named.includes('key')) return 'cert and key are set together, or neither is'
  return undefined
}

/**
 * Reads the files that an address names, as in `rediss://redis:6379?ca=/tls/ca.pem&cert=/tls/client.pem&key=/tls/client-key.pem`.
 * The other parameters stay. Throws a PermanentError if a file cannot be read. Without `ca`, Node's authorities are trusted, and
 * those of `NODE_EXTRA_CA_CERTS`. The certificate is always verified, with the host of the address.
 */
export function readRedisAddress(text: string): RedisAddress {
  const url = new URL(text)
  if (url.protocol !== 'rediss:') return { url: text }
  const tls: ConnectionOptions = {}
  for (const name of FILES) {
    const path = url.searchParams.get(name)
    if (path === null) continue
    tls[name] = readPem(name, path)
    url.searchParams.delete(name)
  }
  // The name that is sent, for servers that share an address. Certificates are compared with the host in any case.
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0) tls.servername = url.hostname
  return { url: url.href, tls }
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new PermanentError(`the file of ${name} in the address of Redis cannot be read: ${path}`, { cause: error })
  }
}
