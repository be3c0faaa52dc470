import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Metrics } from '../metrics.ts'

/** Parameters of an address that name files with certificates. */
const FILES = ['ca', 'cert'] as const
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * Shows when the certificates end that the addresses of Redis name, by store. Files are read for each report, so that a renewed
 * one counts at once. An address without files has no series, and neither has a file that cannot be read.
 */
export function watchCertificates(metrics: Metrics, addresses: Readonly<Record<string, string>>): void {
  const named = Object.entries(addresses).flatMap(([store, address]) => {
    const query = new URLSearchParams(/\?([^#]*)/.exec(address)?.[1])
    return FILES.flatMap(file => query.getAll(file).map(path => ({ store, file, path })))
  })
  metrics.gauge({
    name: 'penstock_certificate_expiry_timestamp_seconds',
    help: 'When the first certificate of a file ends that an address of Redis names (ca, cert).',
    labelNames: ['store', 'file'],
    async collect() {
      const ends = await Promise.all(named.map(({ path }) => readEnd(path)))
      this.reset()
      for (const [i, { store, file }] of named.entries()) {
        const endsAtMs = ends[i]
        if (endsAtMs !== undefined) this.set({ store, file }, endsAtMs / 1_000)
      }
    },
  })
}

/** Returns when the first of the certificates in a file ends, in Unix ms; undefined if the file has none. */
async function readEnd(path: string): Promise<number | undefined> {
  try {
    const texts = (await readFile(path, 'utf8')).match(CERTIFICATE) ?? []
    const ends = texts.map(text => Date.parse(new X509Certificate(text).validTo))
    return ends.length === 0 ? undefined : Math.min(...ends)
  } catch {
    return undefined
  }
}
