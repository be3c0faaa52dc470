import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { fillPlaceholders, parseMigration } from './migration-files.ts'

const MIGRATIONS = new URL('../migrations/', import.meta.url)

it('splits a file at line-ending semicolons and removes comments', () => {
  const text = `-- spans; one row each;
CREATE TABLE IF NOT EXISTS \${database}.a (s String DEFAULT ';x') ENGINE = Null;

  -- more
ALTER TABLE \${database}.a ADD COLUMN IF NOT EXISTS t String;\n`
  expect(parseMigration('0007_a.sql', text)).toMatchObject({
    id: 7,
    statements: [
      `CREATE TABLE IF NOT EXISTS \${database}.a (s String DEFAULT ';x') ENGINE = Null`,
      `ALTER TABLE \${database}.a ADD COLUMN IF NOT EXISTS t String`,
    ],
  })
})

it.each([
  'CREATE TABLE a (x UInt8) ENGINE = Null',
  'DROP TABLE a',
  'ALTER TABLE a ADD COLUMN b String',
  'ALTER TABLE a DROP COLUMN b',
  'RENAME TABLE a TO b',
])('refuses a statement that cannot run twice: %s', statement => {
  expect(() => parseMigration('0001_a.sql', `${statement};`)).toThrow(PermanentError)
})

/** Returns the views whose query one of these files changes, and none from this file on gives them their final tokens. */
function viewsWithOtherTokens(files: readonly (readonly [name: string, text: string])[]): string[] {
  const late = new Set<string>()
  for (const statement of files.flatMap(([name, text]) => parseMigration(name, text).statements)) {
    late.add(/^ALTER TABLE (\S+) MODIFY QUERY/.exec(statement)?.[1] ?? '')
    late.delete(/^RENAME TABLE IF EXISTS \S+_renamed TO (\S+)$/.exec(statement)?.[1] ?? '')
  }
  return [...late].filter(view => view !== '')
}

it('every view whose query is changed is renamed afterwards, so that its tokens are those of after a restart (README.md)', () => {
  const change = 'ALTER TABLE a MODIFY QUERY SELECT 1;\n'
  const rename = 'RENAME TABLE IF EXISTS a TO a_renamed;\nRENAME TABLE IF EXISTS a_renamed TO a;\n'
  expect(viewsWithOtherTokens([['0001_a.sql', change]])).toEqual(['a'])
  expect(viewsWithOtherTokens([['0001_a.sql', rename + change]])).toEqual(['a'])
  expect(viewsWithOtherTokens([['0001_a.sql', change + rename]])).toEqual([])
  const read = (file: string) => [file, readFileSync(new URL(file, MIGRATIONS), 'utf8')] as const
  expect(viewsWithOtherTokens(readdirSync(MIGRATIONS).sort().map(read))).toEqual([])
})

it('refuses a file name without a number', () => {
  expect(() => parseMigration('spans.sql', '')).toThrow(/0001_what_it_makes/)
})

it('fills placeholders and refuses an unknown placeholder', () => {
  expect(fillPlaceholders(`a \${database} b`, new Map([['database', 'penstock']]))).toBe('a penstock b')
  expect(() => fillPlaceholders(`\${constructor}`, new Map())).toThrow(PermanentError)
})

it('no released migration has changed by a byte: databases compare the checksums of the files that they have applied', () => {
  const listed = readFileSync(new URL('released-migrations.sha256', import.meta.url), 'utf8').match(
    /^[0-9a-f]{64} .+$/gm,
  )
  for (const line of listed ?? []) {
    const [digest, file = ''] = line.split('  ')
    const text = readFileSync(new URL(file, MIGRATIONS))
    expect(createHash('sha256').update(text).digest('hex'), file).toBe(digest)
  }
})
