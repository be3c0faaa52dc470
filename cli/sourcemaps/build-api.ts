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
import { MIB } from '../../schemas/units.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { counted } from '../terminal.ts'
import { BuildFailure } from './build-failure.ts'
import { type HttpAnswer, type HttpClient, problemCode, type RequestBody } from './http-client.ts'

/**
 * The service's operations for builds (docs/api/releases.md#register-release, #sign, #source-map-part,
 * #source-map-complete, #build-report). Every method throws a BuildFailure if the service refuses the request.
 */
export interface BuildApi {
  /** Registers the release and returns its slug. */
  register(release: RegisterRelease): Promise<string>
  /** Declares source maps and returns one entry for each file, in the same order. */
  sign(slug: string, files: SignSourceMaps['files']): Promise<SignedFile[]>
  /** Uploads one part of a source map. */
  putPart(slug: string, path: string, part: number, bytes: Buffer): Promise<void>
  /** Completes the release and returns the number of maps in its manifest. */
  complete(slug: string, manifest: CompleteSourceMaps): Promise<number>
  /** Sends the build report, in one attempt with a short deadline. */
  report(slug: string, report: BuildReport): Promise<void>
}

const CALL_DEADLINE_MS = 30_000
/** The service waits up to 20 s for the manifest before it answers 503, and sending the body takes time as well. */
const COMPLETE_DEADLINE_MS = 60_000
const REPORT_DEADLINE_MS = 5_000
/** Limit of the request that completes a release. The service accepts as many bytes. */
const COMPLETE_LIMIT_BYTES = 16 * MIB

/** Creates the client of the service's operations for builds. */
export function createBuildApi(http: HttpClient, { baseUrl, key }: { baseUrl: string; key: string }): BuildApi {
  const request = requestsOf(`${baseUrl.replace(/\/+$/, '')}/v3/releases`, key)
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
        throw new BuildFailure('pipeline_failed', `${what}: the answer does not name the declared files`)
      }
      return signed
    },
    async putPart(slug, path, part, bytes) {
      const what = `uploading part ${part} of ${path}`
      const query = new URLSearchParams({ part: String(part), path })
      const target = `/${slug}/source-maps?${query}`
      const answer = await http.send(request(what, 'PUT', target, 'application/octet-stream', bytes))
      if (answer.status === 409) {
        const reason = 'another build has uploaded different bytes for this path and version: use another --version'
        throw new BuildFailure('pipeline_failed', `${path}: ${reason} (RELEASE_UPLOAD_CONFLICT)`)
      }
      refuse(answer, what)
    },
    async complete(slug, manifest) {
      const what = 'completing the release'
      const call = json(what, `/${slug}/source-maps/complete`, manifest)
      const bytes = Buffer.byteLength(call.body().content as string)
      if (bytes > COMPLETE_LIMIT_BYTES) {
        const size = `the list of ${counted(manifest.files.length, 'source map')} has ${bytes} bytes`
        const advice = 'upload parts of DIR as separate versions'
        throw new BuildFailure('pipeline_failed', `${size}, the limit is ${COMPLETE_LIMIT_BYTES}: ${advice}`)
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

function requestsOf(url: string, key: string) {
  return (what: string, method: 'POST' | 'PUT', path: string, contentType: string, content: Buffer | string) => ({
    what,
    method,
    url: url + path,
    headers: { authorization: `Bearer ${key}`, 'content-type': contentType },
    body: (): RequestBody => ({ content }),
    deadlineMs: CALL_DEADLINE_MS,
  })
}

function read<S extends z.ZodType>(answer: HttpAnswer, schema: S, what: string): z.infer<S> {
  refuse(answer, what)
  const result = schema.safeParse(parseJson(answer.text))
  if (result.success) return result.data
  throw new BuildFailure('pipeline_failed', `${what}: the answer does not come from this service: check the URL`)
}

/** Throws unless the request succeeded: 401 and 403 concern the key, every other status the request. */
function refuse({ status, text }: HttpAnswer, what: string): void {
  if (status >= 200 && status < 300) return
  const message = `${what}: answered ${status}${problemCode(text)}${messageOf(text)}`
  if (status === 401) throw new BuildFailure('api_key_rejected', message)
  if (status === 403) throw new BuildFailure('api_key_scope_mismatch', message)
  throw new BuildFailure('pipeline_failed', message)
}

/** Returns the message of a problem body. Nothing is shown of another server's answer. */
function messageOf(text: string): string {
  const body = parseJson(text)
  const message = typeof body === 'object' && body !== null && 'message' in body ? body.message : undefined
  return typeof message === 'string' ? `: ${message.slice(0, 2_000).replace(/\p{Cc}/gu, ' ')}` : ''
}
