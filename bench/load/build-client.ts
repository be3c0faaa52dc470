import { createHash } from 'node:crypto'
import { Agent } from 'node:http'
import { registeredReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import {
  completedSourceMapsSchema,
  type ManifestEntry,
  signedSourceMapsSchema,
} from '../../schemas/http/source-maps/schemas.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { type SentRequest, sendRequest } from './send-request.ts'

/** Concurrent uploads of a build. */
export const UPLOADS_AT_ONCE = 32
const PART_BYTES = 512 * 1024
/** Files that one sign call accepts, with paths of the length that the bench uses. */
const FILES_PER_SIGN = 1_000

/** A source map to upload. */
export interface BuildFile {
  readonly path: string
  readonly body: Buffer
  /** SHA-256 in hex. */
  readonly hash: string
  readonly chunkUrl: string
}

/** Creates a build file from the bytes of a source map. */
export function buildFile(path: string, body: Buffer): BuildFile {
  const hash = createHash('sha256').update(body).digest('hex')
  return { path, body, hash, chunkUrl: `https://cdn.example/${path.replace(/\.map$/, '')}` }
}

/** The requests of a build to the product's edge. Each resolves with the number of refusals before its 200. */
export interface BuildClient {
  register(version: string): Promise<string>
  /** Signs the files and uploads them to the presigned addresses. */
  uploadSigned(slug: string, files: readonly BuildFile[]): Promise<number>
  uploadParts(slug: string, files: readonly BuildFile[]): Promise<number>
  complete(slug: string, files: readonly BuildFile[]): Promise<number>
  /** Uploads to addresses that were signed before, in the same way as `uploadSigned`. */
  putAll(urls: readonly string[], files: readonly BuildFile[]): Promise<number>
}

/** Creates a client that sends as one surface. */
export function createBuildClient(context: ScenarioContext, baseUrl: string, secretKey: string): BuildClient {
  const agent = new Agent({ keepAlive: true, maxSockets: UPLOADS_AT_ONCE })
  context.onEnd(() => agent.destroy())

  function call(method: SentRequest['method'], path: string, body: Buffer, contentType = 'application/json') {
    const headers = { authorization: `Bearer ${secretKey}`, 'content-type': contentType }
    return sendRequest({ agent, method, url: `${baseUrl}/v3/releases${path}`, headers, body })
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))

  async function putAll(urls: readonly string[], files: readonly BuildFile[]): Promise<number> {
    let refused = 0
    await forEachConcurrently(files, { concurrency: UPLOADS_AT_ONCE }, async ({ body }, i) => {
      refused += (await sendRequest({ agent, method: 'PUT', url: urls[i] as string, body })).refused
    })
    return refused
  }

  return {
    async register(version) {
      const { body } = await call('POST', '', json({ version }))
      return registeredReleaseSchema.parse(JSON.parse(body)).releaseSlug
    },
    async uploadSigned(slug, files) {
      let refused = 0
      for (let i = 0; i < files.length; i += FILES_PER_SIGN) {
        const page = files.slice(i, i + FILES_PER_SIGN)
        const declared = page.map(({ path, body, hash }) => ({ path, size: body.length, hash }))
        const { body } = await call('POST', `/${slug}/source-maps/sign`, json({ files: declared }))
        const signed = signedSourceMapsSchema.parse(JSON.parse(body)).files
        const urls = signed.map(file => {
          if ('alreadyUploaded' in file) throw new Error(`${file.path} is already uploaded`)
          return file.uploadUrl
        })
        refused += await putAll(urls, page)
      }
      return refused
    },
    async uploadParts(slug, files) {
      const parts = files.flatMap(({ path, body }) =>
        Array.from({ length: Math.ceil(body.length / PART_BYTES) }, (_, part) => ({
          query: new URLSearchParams({ path, part: String(part) }),
          body: body.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
        })),
      )
      let refused = 0
      await forEachConcurrently(parts, { concurrency: UPLOADS_AT_ONCE }, async ({ query, body }) => {
        refused += (await call('PUT', `/${slug}/source-maps?${query}`, body, 'application/octet-stream')).refused
      })
      return refused
    },
    async complete(slug, files) {
      const entries = files.map(({ path, hash, chunkUrl }): ManifestEntry => ({ path, hash, chunkUrl, debugId: '' }))
      const request = json({ files: entries, sourceFileCount: files.length })
      const { body, refused } = await call('POST', `/${slug}/source-maps/complete`, request)
      const { fileCount } = completedSourceMapsSchema.parse(JSON.parse(body))
      if (fileCount !== files.length) throw new Error(`${fileCount} files are complete instead of ${files.length}`)
      return refused
    },
    putAll,
  }
}
