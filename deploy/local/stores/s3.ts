import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { answers, startChild, untilReady } from '../processes/child-process.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

/** Options of a local S3 server. */
interface S3Options extends LocalServiceOptions {
  bucket: string
  accessKeyId: string
  secretAccessKey: string
}

const SERVER = fileURLToPath(new URL('s3-server.mjs', import.meta.url))

/** Starts an S3 server with one bucket that checks signatures: miniflare's simulation of R2, with objects on disk. */
export async function startS3(options: S3Options): Promise<LocalService> {
  await mkdir(options.dir, { recursive: true })
  const { dir, port, bucket, accessKeyId, secretAccessKey } = options
  const child = await startChild({
    command: process.execPath,
    args: [SERVER],
    firstInput: `${JSON.stringify({ dir, port, bucket, accessKeyId, secretAccessKey })}\n`,
    askToEnd: stdin => stdin?.end(),
    log: options.log,
  })
  const url = `http://127.0.0.1:${port}/cdn-cgi/local/r2/s3`
  await untilReady('S3', child, () => answers(url), options)
  return Object.assign(child, { url })
}
