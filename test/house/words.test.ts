import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { proseOf, ROOT, trackedFiles } from './prose.ts'

/** Matches that were looked at and are right where they are, as `file: text`. There may be at most 19. */
const ACCEPTED: readonly string[] = [
  // A heading.
  '.github/pull_request_template.md: What',
  // Examples of what to avoid.
  'CONTRIBUTING.md: Lets go of',
  'CONTRIBUTING.md: go on',
  // "Returns the answer for one declared file."
  'packages/build/src/upload/upload-maps.ts: answer for',
  // The name of a workspace.
  'test/integration/cli/directory.test.ts: nobody',
  // The text of an error of Redis.
  'workers/queue/payloads/large-replies.test.ts: is no length',
]

const LIST = 'test/house/suspect-phrases.txt'
/** The list itself, figures as they were printed, and migrations, whose bytes are compared with checksums in databases. */
const EXEMPT = ['test/house/', 'bench/RESULTS.md', 'clickhouse/migrations/']

interface Phrase {
  readonly source: string
  readonly pattern: RegExp
  readonly instead: string
}

function readPhrases(): Phrase[] {
  return readFileSync(ROOT + LIST, 'utf8')
    .split('\n')
    .filter(line => line.trim() !== '' && !line.startsWith('#'))
    .map(line => {
      const [source = '', instead = ''] = line.split('=>').map(part => part.trim())
      const pattern = source.startsWith('^') ? `(?:^|[.!?] +)(?:${source.slice(1)})` : source
      return { source, pattern: new RegExp(pattern, 'giu'), instead }
    })
}

function matches(): string[] {
  const phrases = readPhrases()
  return trackedFiles()
    .filter(file => !EXEMPT.some(path => file.startsWith(path)))
    .flatMap(proseOf)
    .flatMap(({ file, line, text }) =>
      phrases.flatMap(({ source, pattern, instead }) =>
        [...text.matchAll(pattern)]
          .filter(match => !ACCEPTED.includes(`${file}: ${match[0].trim()}`))
          .map(match => `${file}:${line} "${match[0].trim()}" (${source}) ${instead}`),
      ),
    )
}

function longCommentLines(): string[] {
  return trackedFiles()
    .filter(file => /\.tsx?$/.test(file))
    .flatMap(file =>
      readFileSync(ROOT + file, 'utf8')
        .split('\n')
        .flatMap((line, i) => (/^ *(\*|\/\/|\/\*\*) /.test(line) && line.length > 132 ? [`${file}:${i + 1}`] : [])),
    )
}

describe('the words', () => {
  it('have a list of phrases, each with what to write instead', () => {
    for (const { source, instead } of readPhrases()) expect(instead, source).not.toBe('')
  })

  it('avoid the suspect phrases', () => {
    expect(ACCEPTED.length).toBeLessThan(20)
    expect(matches()).toEqual([])
  })

  it('stand in comments of at most 132 characters a line', () => {
    expect(longCommentLines()).toEqual([])
  })
})
