import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ReleaseBuildResult } from '../../schemas/http/releases/schemas.ts'
import type { ManifestEntry } from '../../schemas/http/source-maps/schemas.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { type BuildApi, createBuildApi } from './build-api.ts'
import { BuildStop, listed } from './build-stop.ts'
import { type DiscoveredBuild, discoverBuild } from './discover-build.ts'
import { createHttpClient, type HttpClientDeps, RequestFailed } from './http-client.ts'
import { chunkUrlOf } from './pair-maps.ts'
import type { PreparedMap } from './prepare-map.ts'
import { prepareMaps } from './prepare-maps.ts'
import { type KeySources, readSecretKey } from './read-secret-key.ts'
import { createStopwatch, type Timings } from './stopwatch.ts'
import { type UploadOutcome, uploadMaps } from './upload-maps.ts'
import type { UploadProgress } from './upload-progress.ts'

export interface Build {
  readonly directory: string
  /** What the telemetry of the release carries as `service.version`. */
  readonly version: string
  readonly commit?: string | undefined
  /** Ends with a slash. */
  readonly urlPrefix: string
  readonly baseUrl: string
  readonly key: KeySources
  readonly concurrency: number
  readonly retryTimeoutMs: number
  readonly byParts: boolean
  readonly dryRun: boolean
  readonly inject: boolean
  readonly allowUnmapped: boolean
}

export interface UploadBuildDeps extends Pick<HttpClientDeps, 'fetch' | 'now' | 'random' | 'delay'> {
  readonly progress: UploadProgress
  /** Ends the upload; what was uploaded stays, and the next run goes on from there. */
  readonly signal: AbortSignal
}

export interface UploadedFile {
  readonly path: string
  readonly bundles: readonly string[]
  /** `ready`: it was not uploaded, or need not be told. */
  readonly outcome: UploadOutcome | 'ready'
  readonly size: number
  readonly sha256: string
  readonly debugId: string
  readonly chunkUrl: string
  /** Files that were given the debug id (by a dry run: would be). */
  readonly injected: readonly string[]
}

export interface BuildOutcome {
  readonly result: ReleaseBuildResult
  /** Why it is not `ok`. */
  readonly message?: string
  readonly releaseSlug?: string
  readonly sourceFileCount: number
  readonly fileCount: number
  readonly totalBytes: number
  readonly timings: Timings
  readonly warnings: readonly string[]
  readonly files: readonly UploadedFile[]
}

/**
 * Uploads the source maps of a build as a release. Until the service has taken the key and registered the release, DIR
 * stays as it is. However it ends is an outcome; once there is a release it is reported to the service too.
 */
export async function uploadBuild(deps: UploadBuildDeps, build: Build): Promise<BuildOutcome> {
  const run = createRun(deps, build)
  try {
    await run.upload()
    return await run.end('ok')
  } catch (error) {
    if (error instanceof BuildStop) return await run.end(error.result, error.message)
    if (deps.signal.aborted) return await run.end('pipeline_failed', 'stopped; run it again to go on')
    return await run.end('pipeline_failed', error instanceof RequestFailed ? error.message : describeError(error))
  }
}

function createRun(deps: UploadBuildDeps, build: Build) {
  const { progress, now } = deps
  const stopwatch = createStopwatch(now)
  const halt = new AbortController()
  const stopped = AbortSignal.any([deps.signal, halt.signal])
  const files = new Map<string, UploadedFile>()
  const warnings: string[] = []
  let discovered: DiscoveredBuild | undefined
  let release: { api: BuildApi; slug: string } | undefined
  let temporaryDirectory: string | undefined

  function warn(lines: readonly string[]): void {
    warnings.push(...lines)
    if (lines.length > 0) progress.note(`warning:${listed(lines)}`)
  }

  function connect(key: string, signal: AbortSignal) {
    const onRetry = throttled(now, (line: string) => progress.note(line))
    const http = createHttpClient(
      {
        ...deps,
        signal,
        onRetry: (what, { reason }, waitMs) => onRetry(`${what}: ${reason}; again in ${(waitMs / 1_000).toFixed(1)} s`),
      },
      { retryTimeoutMs: build.retryTimeoutMs },
    )
    return { http, api: createBuildApi(http, { baseUrl: build.baseUrl, key }) }
  }

  async function upload(): Promise<void> {
    const key = build.dryRun ? '' : await readSecretKey(build.key)
    const { http, api } = connect(key, stopped)

    stopwatch.enter('discover')
    discovered = await discoverBuild({ ...build, signal: stopped })
    warn(discovered.warnings)
    if (!build.dryRun) {
      stopwatch.enter('createRelease')
      const { version, commit } = build
      const slug = await api.register({ version, ...(commit !== undefined && { commit }) })
      release = { api: connect(key, deps.signal).api, slug }
      stopwatch.enter('discover')
    }
    if (discovered.fault) throw discovered.fault
    const maps = await prepare(discovered)
    if (!release) return

    stopwatch.enter('upload')
    const { slug } = release
    progress.begin('uploading source maps', maps.length)
    await uploadMaps(
      {
        api,
        http,
        now,
        onUploaded(map, outcome) {
          const file = files.get(map.path)
          if (file) files.set(map.path, { ...file, outcome })
          progress.advance(outcome === 'known' ? 0 : map.size)
        },
        onStoreUnreachable: (host, reason) =>
          progress.note(
            `the object store at ${host} cannot be reached from here (${reason}): uploading through the service`,
          ),
        onFailure: () => halt.abort(),
      },
      maps,
      { slug, concurrency: build.concurrency, byParts: build.byParts },
    )
    progress.end()
    const entries = [...files.values()].map(manifestEntry)
    const count = await api.complete(slug, { files: entries, sourceFileCount: discovered.bundleCount })
    if (count !== entries.length) {
      throw new BuildStop(
        'pipeline_failed',
        `the manifest has ${count} source maps, and ${entries.length} were uploaded`,
      )
    }
  }

  async function prepare(found: DiscoveredBuild): Promise<readonly PreparedMap[]> {
    temporaryDirectory = build.dryRun ? '' : await mkdtemp(join(tmpdir(), 'penstock-maps-'))
    const prepared = await prepareMaps(found.maps, { ...build, temporaryDirectory, signal: stopped })
    warn(prepared.warnings)
    const bundles = new Map(found.maps.map(({ path, bundles }) => [path, bundles.map(({ file }) => file.path)]))
    for (const map of prepared.maps) files.set(map.path, described(map, bundles.get(map.path) ?? [], build.urlPrefix))
    return prepared.maps
  }

  /** Removes what the run has put aside, and reports how it ended. */
  async function end(result: ReleaseBuildResult, message?: string): Promise<BuildOutcome> {
    progress.end()
    stopwatch.enter('cleanup')
    if (temporaryDirectory) await rm(temporaryDirectory, { recursive: true, force: true })
    const timings = stopwatch.timings()
    const sizes = [...files.values()].map(({ size }) => size)
    const counts = { fileCount: sizes.length, totalBytes: sizes.reduce((sum, size) => sum + size, 0) }
    if (release && !deps.signal.aborted) {
      await release.api.report(release.slug, { ...timings, ...counts, result }).catch((error: unknown) => {
        progress.note(`the timings could not be reported: ${describeError(error)}`)
      })
    }
    return {
      result,
      ...(message !== undefined && { message }),
      ...(release && { releaseSlug: release.slug }),
      sourceFileCount: discovered?.bundleCount ?? 0,
      ...counts,
      timings,
      warnings,
      files: [...files.values()],
    }
  }

  return { upload, end }
}

function described(map: PreparedMap, bundles: readonly string[], urlPrefix: string): UploadedFile {
  const { path, size, sha256, debugId, injected } = map
  const chunkUrl = bundles[0] === undefined ? '' : chunkUrlOf(urlPrefix, bundles[0])
  return { path, bundles, outcome: 'ready', size, sha256, debugId, chunkUrl, injected }
}

function manifestEntry({ path, sha256, debugId, chunkUrl }: UploadedFile): ManifestEntry {
  return { path, hash: sha256, debugId, chunkUrl }
}

/** At most a line every five seconds: many requests wait for the same outage. */
function throttled(now: () => number, tell: (line: string) => void): (line: string) => void {
  let toldAt = Number.NEGATIVE_INFINITY
  return line => {
    if (now() - toldAt < 5_000) return
    toldAt = now()
    tell(line)
  }
}
