import { env } from 'node:process'
import type { PenstockOptions } from '../options.ts'
import { BuildFailure } from '../upload/build-failure.ts'
import type { BuildOutput } from '../upload/find-build-files.ts'
import type { BuildUpload } from '../upload/upload-build.ts'

/** Variables of the environment that replace options. */
type Environment = Readonly<Record<string, string | undefined>>

const CONCURRENCY = 8
const RETRY_TIMEOUT_MS = 60_000

/** The environment of the build. */
export const environment: Environment = env

/** Returns the upload that options and environment describe. Throws a BuildFailure if a part of it is missing. */
export function toUpload(
  options: PenstockOptions,
  outputs: readonly BuildOutput[],
  env: Environment = environment,
): BuildUpload {
  const version = options.version || env.PENSTOCK_VERSION || env.GITHUB_SHA
  if (!version) throw missing('no version: set the option version, PENSTOCK_VERSION or GITHUB_SHA')
  const dryRun = options.dryRun ?? false
  const baseUrl = options.url || env.PENSTOCK_URL || ''
  if (!dryRun && !/^https?:\/\//.test(baseUrl))
    throw missing('no http or https URL: set the option url or PENSTOCK_URL')
  const urlPrefix = options.urlPrefix || '~/'
  return {
    outputs,
    version,
    baseUrl,
    dryRun,
    urlPrefix: urlPrefix.endsWith('/') ? urlPrefix : `${urlPrefix}/`,
    commit: options.commit || env.GITHUB_SHA || undefined,
    repository: options.repository || repositoryOf(env),
    key: { environment: options.key || env.PENSTOCK_SECRET_KEY || undefined },
    concurrency: CONCURRENCY,
    retryTimeoutMs: options.retryTimeoutMs ?? RETRY_TIMEOUT_MS,
    byParts: false,
    inject: options.inject ?? true,
    allowUnmapped: options.allowUnmapped ?? false,
    removeMaps: !(options.keepMaps ?? false),
  }
}

function missing(what: string): BuildFailure {
  return new BuildFailure('pipeline_failed', `there is ${what}`)
}

function repositoryOf({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name }: Environment): string | undefined {
  return server?.startsWith('https://') && name ? `${server}/${name}` : undefined
}
