import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/**
 * Runs an S3 server. Reads its settings from the first line of stdin, so that the secret is not in the process list. Ends
 * with stdin.
 *
 * Miniflare checks the signature of S3's requests, but two of its features have no credential and no setting: it serves
 * every object by its key to anybody, at `/cdn-cgi/local/r2/public`, and an HTTP server on another port writes files for
 * anybody, of any directory. Both are removed from its source when it is loaded. A version in which the source reads
 * differently does not start.
 */
const CLOSED = [
  ['function getR2PublicService(allWorkerOpts) {', 'function getR2PublicService(allWorkerOpts) {\n  return void 0;'],
  ['createServer(this.#handleLoopback)', "createServer().prependListener('connection', socket => socket.destroy())"],
]

registerHooks({
  load(url, context, nextLoad) {
    if (!url.endsWith('/miniflare/dist/src/index.js')) return nextLoad(url, context)
    let source = readFileSync(fileURLToPath(url), 'utf8')
    for (const [open, closed] of CLOSED) {
      if (source.split(open).length !== 2) throw new Error(`miniflare has changed: it has no single "${open}"`)
      source = source.replace(open, () => closed)
    }
    return { format: 'commonjs', source, shortCircuit: true }
  },
})
const { Log, LogLevel, Miniflare } = await import('miniflare')

const input = createInterface({ input: process.stdin })
let miniflare

input.once('line', async line => {
  const { dir, host = '127.0.0.1', hostname, port, bucket, accessKeyId, secretAccessKey } = JSON.parse(line)
  miniflare = new Miniflare({
    host,
    port,
    cf: false,
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    modules: true,
    script: 'export default { fetch: () => new Response("ok") }',
    compatibilityDate: '2026-07-01',
    // Other names of this server than those of the loopback interface are refused.
    ...(hostname && { routes: [`${hostname}/*`] }),
    r2Buckets: { B0: { id: bucket, s3Credentials: { accessKeyId, secretAccessKey } } },
    r2Persist: dir,
  })
  await miniflare.ready
})

input.once('close', async () => {
  await miniflare?.dispose()
  process.exit(0)
})
