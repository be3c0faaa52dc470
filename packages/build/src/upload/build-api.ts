import { COMPLETION_BYTES } from '../../../../schemas/http/limits.ts'
import type { BuildReport, RegisterRelease } from '../../../../schemas/http/releases/schemas.ts'
import type { CompleteSourceMaps, SignedFile, SignSourceMaps } from '../../../../schemas/http/source-maps/schemas.ts'
import { BuildFailure } from './build-failure.ts'
import { counted } from './describe.ts'
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

/** Creates the client of the service's operations for builds. */
export function createBuildApi(http: HttpClient, { baseUrl, key }: { baseUrl: string; key: string }): BuildApi {
  const request = requestsOf(`${baseUrl.replace(/\/+$/, '')}/v3/releases`, key)
  const json = (what: string, path: string, body: unknown) =>
    request(what, 'POST', path, 'application/json', JSON.stringify(body))

  return {
    async register(release) {
      const answer = await http.send(json('registering the release', '', release))
      return read(answer, readSlug, 'registering the release')
    },
    async sign(slug, files) {
      const what = 'declaring source maps'
      const answer = await http.send(json(what, `/${slug}/source-maps/sign`, { files }))
      return read(answer, body => readSigned(body, files), what)
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
      if (bytes > COMPLETION_BYTES) {
        const size = `the list of ${counted(manifest.files.length, 'source map')} has ${bytes} bytes`
        const advice = 'upload parts of DIR as separate versions'
        throw new BuildFailure('pipeline_failed', `${size}, the limit is ${COMPLETION_BYTES}: ${advice}`)
      }
      return read(await http.send({ ...call, deadlineMs: COMPLETE_DEADLINE_MS }), readFileCount, what)
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

/** Reads the body of an answer. It is checked by hand: loading zod takes 0.1 s, which a build would notice. */
function read<T>(answer: HttpAnswer, readBody: (body: Record<string, unknown>) => T | undefined, what: string): T {
  refuse(answer, what)
  const value = readBody(parseObject(answer.text))
  if (value !== undefined) return value
  throw new BuildFailure('pipeline_failed', `${what}: the answer does not come from this service: check the URL`)
}

function readSlug({ releaseSlug }: Record<string, unknown>): string | undefined {
  return typeof releaseSlug === 'string' && /^rel_[\w-]{1,124}$/.test(releaseSlug) ? releaseSlug : undefined
}

function readFileCount({ fileCount }: Record<string, unknown>): number | undefined {
  return typeof fileCount === 'number' ? fileCount : undefined
}

/** Returns the entries if they name the declared files in their order. */
function readSigned({ files }: Record<string, unknown>, declared: SignSourceMaps['files']): SignedFile[] | undefined {
  if (!Array.isArray(files) || files.length !== declared.length) return undefined
  return files.every((file, i) => isSigned(file) && file.path === declared[i]?.path) ? files : undefined
}

function isSigned(file: unknown): file is SignedFile {
  if (typeof file !== 'object' || file === null || !('path' in file)) return false
  if ('alreadyUploaded' in file) return file.alreadyUploaded === true
  if (!('uploadUrl' in file && 'expiresAt' in file)) return false
  return typeof file.uploadUrl === 'string' && URL.canParse(file.uploadUrl) && typeof file.expiresAt === 'string'
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
  const { message } = parseObject(text)
  return typeof message === 'string' ? `: ${message.slice(0, 2_000).replace(/\p{Cc}/gu, ' ')}` : ''
}

/** Returns the object that a text is as JSON. Any other text is as an object without members. */
function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {} // another server may answer with HTML
  }
}
