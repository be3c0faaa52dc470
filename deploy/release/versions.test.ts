import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { MANIFEST, ROOT } from './manifest.ts'
import { notesOf, releasedChangelog, versionedFiles } from './versions.ts'

it('image and chart have the version of package.json', () => {
  for (const { file, text, wanted } of versionedFiles()) {
    expect(text, `${file}: run "node deploy/release/versions.ts"`).toBe(wanted)
    expect(text).toContain(MANIFEST.version)
  }
})

const MAINS = ['ingest', 'workers', 'api', 'clickhouse/migrate', 'deploy/local', 'cli'].map(
  folder => `${folder}/main.ts`,
)

it.each(MAINS)('%s prints the version of package.json, without any settings', main => {
  const output = execFileSync(process.execPath, [join(ROOT, main), '--version'], { encoding: 'utf8', env: {} })
  expect(output).toBe(`${MANIFEST.version}\n`)
})

const CHANGELOG =
  '# Changelog\n\nIntro.\n\n## Unreleased\n\nNew.\n\n### Fixed\n\nOne.\n\n## 0.1.0 (2026-01-01)\n\nOld.\n'

it('cuts the notes of a version from the changelog', () => {
  expect(notesOf(CHANGELOG, 'Unreleased')).toBe('New.\n\n### Fixed\n\nOne.')
  expect(notesOf(CHANGELOG, '0.1.0')).toBe('Old.')
  expect(notesOf(CHANGELOG, '0.1')).toBeUndefined()
})

it('gives what was unreleased to the new version', () => {
  const released = releasedChangelog(CHANGELOG, '0.2.0', '2026-02-03')
  expect(released).toContain('## 0.2.0 (2026-02-03)\n\nNew.')
  expect(notesOf(released, '0.2.0')).toBe(notesOf(CHANGELOG, 'Unreleased'))
  expect(notesOf(released, 'Unreleased')).toBeUndefined()
})
