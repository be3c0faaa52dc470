import { createInterface } from 'node:readline'
import { Log, LogLevel, Miniflare } from 'miniflare'

/** Reads its settings from the first line of stdin, so that the secret is not in the process list. Ends with stdin. */
const input = createInterface({ input: process.stdin })
let miniflare

input.once('line', async line => {
  const { dir, port, bucket, accessKeyId, secretAccessKey } = JSON.parse(line)
  miniflare = new Miniflare({
    host: '127.0.0.1',
    port,
    cf: false,
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    modules: true,
    script: 'export default { fetch: () => new Response("ok") }',
    compatibilityDate: '2026-07-01',
    r2Buckets: { B0: { id: bucket, s3Credentials: { accessKeyId, secretAccessKey } } },
    r2Persist: dir,
  })
  await miniflare.ready
})

input.once('close', async () => {
  await miniflare?.dispose()
  process.exit(0)
})
