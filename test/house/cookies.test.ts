import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ROOT, trackedFiles } from './prose.ts'

/** What serves requests. */
const SERVES = /^(?:api|ingest|shared\/http|deploy\/local)\/.*\.(?:ts|js)$/
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm

function mentionsOf(files: readonly string[]): string[] {
  return files.flatMap(file =>
    readFileSync(ROOT + file, 'utf8')
      .replace(COMMENT, comment => comment.replace(/[^\n]/g, ''))
      .split('\n')
      .flatMap((line, i) => (/cookie/i.test(line) ? [`${file}:${i + 1}`] : [])),
  )
}

describe('cookies', () => {
  const code = trackedFiles().filter(file => !file.endsWith('.test.ts'))

  it('are found where they are known to be', () => {
    expect(mentionsOf(['test/house/cookies.test.ts']).length).toBeGreaterThan(0)
  })

  // Requests of other sites carry cookies: a route that reads one needs protection against them (docs/decisions/040-console.md).
  it('are neither read nor set by the API, the edge and the issuer of npm start', () => {
    const serving = code.filter(file => SERVES.test(file))
    expect(serving.length).toBeGreaterThan(100)
    expect(mentionsOf(serving)).toEqual([])
  })
})
