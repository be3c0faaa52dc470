import type { z } from 'zod'
import type { BuildReport } from '../../schemas/http/releases/schemas.ts'
import { type RegisterRelease, registeredReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import {
  type CompleteSourceMaps,
  completedSourceMapsSchema,
  type SignedFile,
  type SignSourceMaps,
  signedSourceMapsSchema,
} from '../../schemas/http/source-maps/schemas.ts'
import { BuildStop } from './build-stop.ts'
import { type HttpAnswer, type HttpClient, problemCode, type RequestBody } from './http-client.ts'

/** The service's operations for builds (spec 4.5, 4.7, 4.8; CONTRACT section 5). A refusal is thrown as a BuildStop. */
export interface BuildApi {
  /** The slug of the release. */
  register(release: RegisterRelease): Promise<string>
  /** In the order of the files. */
  sign(slug: string, files: SignSourceMaps['files']): Promise<SignedFile[]>
  putPart(slug: string, path: string, part: number, bytes: Buffer): Promise<void>
  /** The number of maps in the manifest. */
  complete(slug: string, manifest: CompleteSourceMaps): Promise<number>
  /** One attempt within a short deadline. */
  report(slug: string, report: BuildReport): Promise<void>
}

const CALL_DEADLINE_MS = 30_000
/** The service waits up to 20 s for the manifest before it answers 503; its body may take its time, too. */
const COMPLETE_DEADLINE_MS = 60_000
const REPORT_DEADLINE_MS = 5_000
export const COMPLETE_LIMIT_BYTES = 16 * 1024 * 1024

export function createBuildApi(http: HttpClient, { baseUrl, key }: { baseUrl: string; key: string }): BuildApi {
  const releases = `${baseUrl.replace(/\/+$/, '')}/v3/releases`
  const request = (
    what: string,
    method: 'POST' | 'PUT',
    path: string,
    contentType: string,
    content: Buffer | string,
  ) => ({
    what,
    method,
    url: releases + path,
    headers: { authorization: `Bearer ${key}`, 'content-type': contentType },
    body: (): RequestBody => ({ content }),
    deadlineMs: CALL_DEADLINE_MS,
  })
  const json = (what: string, path: string, body: unknown) =>
    request(what, 'POST', path, 'application/json', JSON.stringify(body))

  return {
    async register(release) {
      const answer = await http.send(json('registering the release', '', release))
      return read(answer, registeredReleaseSchema, 'registering the release').releaseSlug
    },
    async sign(slug, files) {
      const what = 'declaring source maps'
      const answer = await http.send(json(what, `/${slug}/source-maps/sign`, { files }))
      const signed = read(answer, signedSourceMapsSchema, what).files
      if (signed.length !== files.length || signed.some(({ path }, i) => path !== files[i]?.path)) {
        throw new BuildStop('pipeline_failed', `${what}: the answer names other files than were declared`)
      }
      return signed
    },
    async putPart(slug, path, part, bytes) {
      const what = `uploading part ${part} of ${path}`
      const query = new URLSearchParams({ part: String(part), path })
      const target = `/${slug}/source-maps?${query}`
      const answer = await http.send(request(what, 'PUT', target, 'application/octet-stream', bytes))
      if (answer.status === 409) {
        const reason = 'another build has uploaded other bytes under this path and version: use another --version'
        throw new BuildStop('pipeline_failed', `${path}: ${reason} (RELEASE_UPLOAD_CONFLICT)`)
      }
      refuse(answer, what)
    },
    async complete(slug, manifest) {
      const what = 'completing the release'
      const call = json(what, `/${slug}/source-maps/complete`, manifest)
      const bytes = Buffer.byteLength(call.body().content as string)
      if (bytes > COMPLETE_LIMIT_BYTES) {
        const size = `the list of ${manifest.files.length} source maps takes ${bytes} bytes, and ${COMPLETE_LIMIT_BYTES}`
        throw new BuildStop(
          'pipeline_failed',
          `${size} is the most one release takes: give parts of DIR versions of their own`,
        )
      }
      return read(await http.send({ ...call, deadlineMs: COMPLETE_DEADLINE_MS }), completedSourceMapsSchema, what)
        .fileCount
    },
    async report(slug, report) {
      const call = json('reporting the build', `/${slug}/telemetry`, report)
      refuse(await http.sendOnce({ ...call, deadlineMs: REPORT_DEADLINE_MS }), 'reporting the build')
    },
  }
}

function read<S extends z.ZodType>(answer: HttpAnswer, schema: S, what: string): z.infer<S> {
  refuse(answer, what)
  const result = schema.safeParse(parseJson(answer.text))
  if (result.success) return result.data
  throw new BuildStop('pipeline_failed', `${what}: the answer is not one of this service; is the address right?`)
}

/** Throws unless it is a success: 401 and 403 speak of the key, everything else of the request. */
function refuse({ status, text }: HttpAnswer, what: string): void {
  if (status >= 200 && status < 300) return
  const message = `${what}: answered ${status}${problemCode(text)}${messageOf(text)}`
  if (status === 401) throw new BuildStop('api_key_rejected', message)
  if (status === 403) throw new BuildStop('api_key_scope_mismatch', message)
  throw new BuildStop('pipeline_failed', message)
}

/** The service's own words; of any other server's answer nothing is shown. */
function messageOf(text: string): string {
  const body = parseJson(text)
  const message = typeof body === 'object' && body !== null && 'message' in body ? body.message : undefined
  return typeof message === 'string' ? `: ${message.slice(0, 2_000).replace(/\p{Cc}/gu, ' ')}` : ''
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the answer of something else than the service
  }
}
