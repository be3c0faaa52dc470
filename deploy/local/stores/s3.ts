import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { answers, startChild, untilReady } from '../processes/child-process.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

export interface S3Options extends LocalServiceOptions {
  bucket: string
  accessKeyId: string
  secretAccessKey: string
}

const SERVER = fileURLToPath(new URL('s3-server.mjs', import.meta.url))

/** An S3 endpoint with one bucket, signatures checked: Cloudflare's R2 as miniflare runs it, its objects on disk. */
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
