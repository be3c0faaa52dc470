import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MANIFEST, ROOT } from './manifest.ts'

/** Files that repeat the version of package.json, because Helm, Docker, npm and the GitHub Action read it there. */
const PLACES: readonly (readonly [file: string, places: RegExp])[] = [
  ['deploy/kubernetes/penstock/Chart.yaml', /^(version: |appVersion: ).*$/gm],
  ['deploy/docker/Dockerfile', /^(ARG VERSION=).*$/gm],
  ...['browser', 'build', 'node'].map(name => [`packages/${name}/package.json`, /^( {2}"version": ")[^"]*/gm] as const),
  ['packages/browser/package.json', /^( {2}"version": ")[^"]*/gm],
  ['packages/build/package.json', /^( {2}"version": ")[^"]*/gm],
  ['packages/node/package.json', /^( {2}"version": ")[^"]*/gm],
  ['packages/build/action.yml', /^( {4}default: )\d.*$/gm],
]

/** Returns the files that repeat the version, with their text now and with that of package.json. */
export function versionedFiles() {
  return PLACES.map(([file, places]) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    return { file, text, wanted: text.replace(places, `$1${MANIFEST.version}`) }
  })
}

/** Returns a changelog in which what was unreleased belongs to this version. */
export function releasedChangelog(changelog: string, version: string, day: string): string {
  return changelog.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version} (${day})`)
}

/** Returns the section of a version, or of `Unreleased`, without its heading. Returns undefined if it is missing or empty. */
export function notesOf(changelog: string, heading: string): string | undefined {
  const sections = changelog.split(/^## /m)
  const found = sections.find(section => section.split(/[\s\n]/, 1)[0] === heading)
  return found?.slice(found.indexOf('\n')).trim() || undefined
}

// `npm version` runs this after it has written package.json, and before it commits.
if (import.meta.main) {
  for (const { file, wanted } of versionedFiles()) writeFileSync(join(ROOT, file), wanted)
  const path = join(ROOT, 'CHANGELOG.md')
  const day = new Date().toISOString().slice(0, 10)
  writeFileSync(path, releasedChangelog(readFileSync(path, 'utf8'), MANIFEST.version, day))
}
