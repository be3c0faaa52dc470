import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { Attributes } from '@opentelemetry/api'

interface Program {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Path of the main script, absent with `node --eval`. */
  readonly script: string | undefined
  readonly cwd: string
}

/** Variables in which hosts and build services state the commit that runs. */
const COMMITS = [
  'VERCEL_GIT_COMMIT_SHA',
  'RENDER_GIT_COMMIT',
  'RAILWAY_GIT_COMMIT_SHA',
  'HEROKU_SLUG_COMMIT',
  'HEROKU_BUILD_COMMIT',
  'SOURCE_VERSION',
  'COMMIT_REF',
  'K_REVISION',
  'GITHUB_SHA',
  'CI_COMMIT_SHA',
  'CIRCLE_SHA1',
  'BITBUCKET_COMMIT',
  'BUILDKITE_COMMIT',
  'BUILD_SOURCEVERSION',
]

/** Returns name, release and environment of the service, as far as they are known. */
export function describeService({ env, script, cwd }: Program): Attributes {
  const { name, version } = readManifest(folderOf(script, cwd))
  const release = first(env.PENSTOCK_RELEASE, ...COMMITS.map(variable => env[variable]), version)
  const environment = first(env.PENSTOCK_ENVIRONMENT, env.NODE_ENV)
  return {
    ...(name !== undefined && { 'service.name': name }),
    ...(release !== undefined && { 'service.version': release }),
    ...(environment !== undefined && { 'deployment.environment.name': environment }),
  }
}

/** A program of a dependency, such as `next start`, runs the application of the current folder. */
function folderOf(script: string | undefined, cwd: string): string {
  if (script === undefined || script.includes(`${sep}node_modules${sep}`)) return cwd
  try {
    const path = realpathSync(script)
    return path.includes(`${sep}node_modules${sep}`) ? cwd : dirname(path)
  } catch {
    return dirname(script)
  }
}

/** Reads the nearest package.json that has a name. */
function readManifest(folder: string): { readonly name?: string; readonly version?: string } {
  for (let current = folder; ; current = dirname(current)) {
    const manifest = parse(join(current, 'package.json'))
    if (isText(manifest?.name)) {
      return { name: manifest.name, ...(isText(manifest.version) && { version: manifest.version }) }
    }
    if (dirname(current) === current) return {}
  }
}

function parse(file: string): { readonly name?: unknown; readonly version?: unknown } | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown }
  } catch {
    return undefined
  }
}

function first(...texts: (string | undefined)[]): string | undefined {
  return texts.map(text => text?.trim()).find(isText)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
