import { Log, LogLevel, Miniflare } from 'miniflare'

/** Runs the S3 server of a test cluster: miniflare's simulation of R2, which checks signatures. */
const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = process.env
const miniflare = new Miniflare({
  host: '0.0.0.0',
  port: 9000,
  cf: false,
  telemetry: { enabled: false },
  log: new Log(LogLevel.ERROR),
  modules: true,
  script: 'export default { fetch: () => new Response("ok") }',
  compatibilityDate: '2026-07-01',
  r2Buckets: { B0: { id: 'penstock', s3Credentials: { accessKeyId, secretAccessKey } } },
  r2Persist: '/data',
})
await miniflare.ready
process.once('SIGTERM', () => void miniflare.dispose().then(() => process.exit(0)))
