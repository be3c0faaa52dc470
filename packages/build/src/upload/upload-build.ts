import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ManifestEntry } from '../../../../schemas/http/source-maps/schemas.ts'
import type { BuildResult, UploadedFile, UploadOutcome, UploadReport } from '../upload-report.ts'
import { type BuildApi, createBuildApi } from './build-api.ts'
import { BuildFailure } from './build-failure.ts'
import { counted, describeError, listed } from './describe.ts'
import { type DiscoveredBuild, discoverBuild } from './discover-build.ts'
import type { BuildOutput } from './find-build-files.ts'
import { forEach } from './for-each.ts'
import { createHttpClient, type HttpClient, type HttpClientDeps, RequestFailed } from './http-client.ts'
import { chunkUrlOf, type PairedMap } from './pair-maps.ts'
import { type PreparedMap, prepareMaps } from './prepare-maps.ts'
import { type KeySources, readSecretKey } from './read-secret-key.ts'
import { Stopwatch } from './stopwatch.ts'
import { uploadMaps } from './upload-maps.ts'

/** A build whose source maps are uploaded, and how they are uploaded. */
export interface BuildUpload {
  readonly outputs: readonly BuildOutput[]
  /** The `service.version` that the telemetry of the release carries. */
  readonly version: string
  readonly commit?: string | undefined
  /** URL of the repository with that commit. */
  readonly repository?: string | undefined
  /** Start of the bundles' URLs, with a slash at the end. */
  readonly urlPrefix: string
  readonly baseUrl: string
  readonly key: KeySources
  readonly concurrency: number
  readonly retryTimeoutMs: number
  readonly byParts: boolean
  readonly dryRun: boolean
  readonly inject: boolean
  readonly allowUnmapped: boolean
  /** Removes the files of maps once the release has them. */
  readonly removeMaps: boolean
}

/** Shows the progress of an upload. */
export interface UploadProgress {
  note(line: string): void
  /** Starts counting up to `total` items. */
  begin(what: string, total: number): void
  /** Counts one item and the bytes that were sent for it. */
  advance(bytes: number): void
  /** Stops counting. It may be called more than once. */
  end(): void
}

/** Dependencies of the upload of a build. */
interface UploadBuildDeps extends Pick<HttpClientDeps, 'fetch' | 'now' | 'random' | 'delay'> {
  readonly progress: UploadProgress
  /** Stops the upload. Maps that were uploaded stay, and the next run continues after them. */
  readonly abortSignal: AbortSignal
}

const REMOVED_AT_ONCE = 8

/**
 * Uploads the source maps of a build as a release. The build's files do not change before the service has accepted the
 * key and registered the release. Never throws: every end is an outcome, which is also reported to the service once the
 * release is registered.
 */
export async function uploadBuild(deps: UploadBuildDeps, build: BuildUpload): Promise<UploadReport> {
  const run = new UploadRun(deps, build)
  try {
    await run.upload()
    return await run.end('ok')
  } catch (error) {
    if (error instanceof BuildFailure) return await run.end(error.result, error.message)
    if (deps.abortSignal.aborted) return await run.end('pipeline_failed', 'stopped: run the command again to continue')
    return await run.end('pipeline_failed', error instanceof RequestFailed ? error.message : describeError(error))
  }
}

/** One upload, from reading the key to the report. */
class UploadRun {
  readonly #deps: UploadBuildDeps
  readonly #build: BuildUpload
  readonly #stopwatch: Stopwatch
  /** Aborts the other requests once one map has failed. */
  readonly #halt = new AbortController()
  readonly #abortSignal: AbortSignal
  readonly #files = new Map<string, UploadedFile>()
  readonly #warnings: string[] = []
  #discovered: DiscoveredBuild | undefined
  #registering: Promise<string> | undefined
  #release: { readonly api: BuildApi; readonly slug: string } | undefined
  #temporaryDirectory = ''
  #removedCount = 0

  constructor(deps: UploadBuildDeps, build: BuildUpload) {
    this.#deps = deps
    this.#build = build
    this.#stopwatch = new Stopwatch(deps.now)
    this.#abortSignal = AbortSignal.any([deps.abortSignal, this.#halt.signal])
  }

  /** Runs all phases. Throws a BuildFailure or a RequestFailed. */
  async upload(): Promise<void> {
    const key = this.#build.dryRun ? '' : await readSecretKey(this.#build.key)
    const { http, api } = this.#connect(key, this.#abortSignal)
    if (!this.#build.dryRun) this.#registering = this.#register(api, key)
    // The service answers while the build is read. A refusal is thrown where the answer is needed.
    void Promise.allSettled([this.#registering])
    this.#stopwatch.enter('discover')
    const discovered = await discoverBuild({ ...this.#build, abortSignal: this.#abortSignal })
    this.#discovered = discovered
    this.#warn(discovered.warnings)
    if (discovered.failure) {
      await this.#registering
      throw discovered.failure
    }
    const maps = await this.#prepare(discovered)
    const slug = await this.#registering
    if (slug === undefined) return
    await this.#uploadMaps(http, api, slug, maps)
    await this.#complete(api, slug, discovered.bundleCount)
    await this.#removeMaps(discovered)
  }

  /** Removes the temporary files and reports how the upload ended. */
  async end(result: BuildResult, message?: string): Promise<UploadReport> {
    const { progress, abortSignal } = this.#deps
    progress.end()
    this.#stopwatch.enter('cleanup')
    await Promise.allSettled([this.#registering])
    if (this.#temporaryDirectory) await rm(this.#temporaryDirectory, { recursive: true, force: true })
    const timings = this.#stopwatch.timings()
    const files = [...this.#files.values()]
    const counts = { fileCount: files.length, totalBytes: files.reduce((sum, { size }) => sum + size, 0) }
    if (this.#release && !abortSignal.aborted) {
      const { api, slug } = this.#release
      await api.report(slug, { ...timings, ...counts, result }).catch((error: unknown) => {
        progress.note(`the build report could not be sent: ${describeError(error)}`)
      })
    }
    return {
      result,
      ...(message !== undefined && { message }),
      ...(this.#release && { releaseSlug: this.#release.slug }),
      sourceFileCount: this.#discovered?.bundleCount ?? 0,
      ...counts,
      sentBytes: files.reduce((sum, { outcome, size }) => sum + (isSent(outcome) ? size : 0), 0),
      removedCount: this.#removedCount,
      timings,
      warnings: this.#warnings,
      files,
    }
  }

  async #register(api: BuildApi, key: string): Promise<string> {
    const { version, commit, repository } = this.#build
    const metadata = repository === undefined ? undefined : { repository }
    const release = { version, ...(commit !== undefined && { commit }), ...(metadata && { metadata }) }
    const slug = await this.#stopwatch.time('createRelease', api.register(release))
    // The report is still sent after a map has failed, so its requests do not depend on #halt.
    this.#release = { api: this.#connect(key, this.#deps.abortSignal).api, slug }
    return slug
  }

  async #prepare({ maps }: DiscoveredBuild): Promise<readonly PreparedMap[]> {
    if (!this.#build.dryRun) this.#temporaryDirectory = await mkdtemp(join(tmpdir(), 'penstock-maps-'))
    const options = {
      temporaryDirectory: this.#temporaryDirectory,
      abortSignal: this.#abortSignal,
      writesMaps: !this.#build.removeMaps,
      accepted: this.#registering,
    }
    const prepared = await prepareMaps(maps, { ...this.#build, ...options })
    this.#warn(prepared.warnings)
    const bundlesOf = new Map(maps.map(({ path, bundles }) => [path, bundles]))
    for (const map of prepared.maps) {
      this.#files.set(map.path, uploadedFile(map, bundlesOf.get(map.path) ?? [], this.#build.urlPrefix))
    }
    return prepared.maps
  }

  async #uploadMaps(http: HttpClient, api: BuildApi, slug: string, maps: readonly PreparedMap[]): Promise<void> {
    const { progress, now } = this.#deps
    this.#stopwatch.enter('upload')
    progress.begin('uploading source maps', maps.length)
    const deps = {
      api,
      http,
      now,
      onUploaded: (map: PreparedMap, outcome: UploadOutcome) => {
        const file = this.#files.get(map.path)
        if (file) this.#files.set(map.path, { ...file, outcome })
        progress.advance(isSent(outcome) ? map.size : 0)
      },
      onStoreUnreachable: (host: string, reason: string) =>
        progress.note(
          `the object store at ${host} cannot be reached from here (${reason}): uploading through the service`,
        ),
      onFailure: () => this.#halt.abort(),
    }
    const { concurrency, byParts } = this.#build
    await uploadMaps(deps, maps, { slug, concurrency, byParts })
    progress.end()
  }

  async #complete(api: BuildApi, slug: string, sourceFileCount: number): Promise<void> {
    const files = [...this.#files.values()].map(manifestEntry)
    const count = await api.complete(slug, { files, sourceFileCount })
    if (count === files.length) return
    const difference = `the manifest contains ${counted(count, 'source map')}, but ${counted(files.length, 'was', 'were')} uploaded`
    throw new BuildFailure('pipeline_failed', difference)
  }

  /** Pages and servers must not show the sources. Without this, the maps would be deployed with the bundles. */
  async #removeMaps({ mapFiles }: DiscoveredBuild): Promise<void> {
    if (!this.#build.removeMaps) return
    this.#stopwatch.enter('cleanup')
    await forEach(mapFiles, { concurrency: REMOVED_AT_ONCE }, async ({ absolutePath }) => {
      await rm(absolutePath, { force: true })
      this.#removedCount++
    })
  }

  #connect(key: string, abortSignal: AbortSignal): { readonly http: HttpClient; readonly api: BuildApi } {
    const { progress, now } = this.#deps
    const note = throttled(now, (line: string) => progress.note(line))
    const deps: HttpClientDeps = {
      ...this.#deps,
      abortSignal,
      onRetry: (what, { reason }, waitMs) => note(`${what}: ${reason}; retrying in ${(waitMs / 1_000).toFixed(1)} s`),
    }
    const http = createHttpClient(deps, { retryTimeoutMs: this.#build.retryTimeoutMs })
    return { http, api: createBuildApi(http, { baseUrl: this.#build.baseUrl, key }) }
  }

  #warn(lines: readonly string[]): void {
    this.#warnings.push(...lines)
    if (lines.length > 0) this.#deps.progress.note(`warning:${listed(lines)}`)
  }
}

function isSent(outcome: UploadedFile['outcome']): boolean {
  return outcome === 'signed' || outcome === 'parts'
}

function uploadedFile(map: PreparedMap, bundles: PairedMap['bundles'], urlPrefix: string): UploadedFile {
  const { path, size, sha256, debugId, injected } = map
  const chunkUrl = bundles[0] === undefined ? '' : chunkUrlOf(urlPrefix, bundles[0].file.urlPath)
  return {
    path,
    bundles: bundles.map(({ file }) => file.path),
    outcome: 'ready',
    size,
    sha256,
    debugId,
    chunkUrl,
    injected,
  }
}

function manifestEntry({ path, sha256, debugId, chunkUrl }: UploadedFile): ManifestEntry {
  return { path, hash: sha256, debugId, chunkUrl }
}

/** Passes on at most one line every five seconds, since many requests wait for the same outage. */
function throttled(now: () => number, note: (line: string) => void): (line: string) => void {
  let notedAt = Number.NEGATIVE_INFINITY
  return line => {
    if (now() - notedAt < 5_000) return
    notedAt = now()
    note(line)
  }
}
