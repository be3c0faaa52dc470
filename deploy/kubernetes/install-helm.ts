import { spawnSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MIB, MINUTE_MS } from '../../schemas/units.ts'
import { cachedHelm, findHelm, HELM_VERSION } from './render.ts'

const BUILD_MS = 20 * MINUTE_MS

/**
 * Entry point of `npm run check:helm`: builds Helm from the Go module proxy, unless there is one already, so that
 * `manifests.test.ts` can render the chart. The module has a checksum in Go's database. Building takes some minutes, once. Where
 * Go or the proxy is missing, a line states that these tests are skipped.
 */
const found = findHelm()
if (found !== undefined) console.log(`Helm: ${found}`)
else {
  const fault = build(cachedHelm())
  if (fault === undefined) console.log(`Helm: ${cachedHelm()}`)
  else console.log(`SKIPPED: the chart is not rendered, because ${fault}`)
}

/** Builds Helm at this path, or returns what prevents it. */
function build(path: string): string | undefined {
  if (spawnSync('go', ['version']).status !== 0) return 'there is neither Helm nor a Go toolchain to build it with'
  console.log(`building Helm ${HELM_VERSION}`)
  // Only a complete file appears under its name, also if two checks build at once.
  const folder = `${dirname(path)}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  try {
    const module = `helm.sh/helm/v3/cmd/helm@${HELM_VERSION}`
    const { status, signal, stderr, error } = spawnSync('go', ['install', '-ldflags', '-s -w', module], {
      env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
      encoding: 'utf8',
      maxBuffer: 64 * MIB,
      timeout: BUILD_MS,
    })
    // Modules that are fetched have a line each. The others state the fault.
    const reason = stderr.split('\n').filter(line => line !== '' && !line.startsWith('go: downloading'))
    if (status !== 0) return `Helm cannot be built: ${error?.message ?? signal ?? reason.join('; ')}`
    mkdirSync(dirname(path), { recursive: true })
    renameSync(join(folder, 'helm'), path)
    return undefined
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
