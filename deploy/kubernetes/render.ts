import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { MIB } from '../../schemas/units.ts'

/** Folder of the chart. */
export const CHART = fileURLToPath(new URL('penstock', import.meta.url))
/** Version of Kubernetes that the manifests are validated for (schemas/write-kinds.ts). */
export const KUBERNETES_VERSION = '1.36.3'

/** Version of Helm that install-helm.ts builds. */
export const HELM_VERSION = 'v3.22.0'

/** What to do where Helm is missing. */
export const NO_HELM =
  'Helm is missing, so the chart is not rendered: node deploy/kubernetes/install-helm.ts builds it with Go, or set HELM_PATH'

/** A Kubernetes object. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly [field: string]: unknown }
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind, and its schema is checked
  readonly spec: any
}

/** Returns where install-helm.ts puts Helm. */
export function cachedHelm(env: NodeJS.ProcessEnv = process.env): string {
  const parent = env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(parent, 'penstock', `helm-${HELM_VERSION}`, 'helm')
}

/** Returns the path of Helm from HELM_PATH, PATH or the cache, or undefined. */
export function findHelm(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env.HELM_PATH
  if (named) return named
  const inPath = (env.PATH ?? '').split(delimiter).map(folder => join(folder, 'helm'))
  return [...inPath, cachedHelm(env)].find(existsSync)
}

/**
 * Renders the chart, a folder or a package, with more arguments of `helm template`. Throws with the output of Helm if it refuses
 * the values.
 */
export function render(helm: string, args: readonly string[], chart = CHART): Manifest[] {
  const fixed = ['template', 'penstock', chart, '--namespace', 'telemetry', '--kube-version', KUBERNETES_VERSION]
  const options = { encoding: 'utf8', stdio: 'pipe', maxBuffer: 64 * MIB } as const
  return parseManifests(execFileSync(helm, [...fixed, ...args], options))
}

/** Returns the objects that Helm has printed. */
export function parseManifests(output: string): Manifest[] {
  return (loadAll(output) as Manifest[]).filter(Boolean)
}
