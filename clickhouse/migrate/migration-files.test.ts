import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { fillPlaceholders, parseMigration } from './migration-files.ts'

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

it('every view whose query is changed is renamed afterwards, so that its tokens are those of after a restart (0027)', () => {
  const directory = new URL('../migrations/', import.meta.url)
  const last = { changed: new Map<string, string>(), renamed: new Map<string, string>() }
  for (const file of readdirSync(directory).sort()) {
    for (const statement of parseMigration(file, readFileSync(new URL(file, directory), 'utf8')).statements) {
      const changed = /^ALTER TABLE (\S+) MODIFY QUERY/.exec(statement)?.[1]
      const renamed = /^RENAME TABLE IF EXISTS \S+_renamed TO (\S+)$/.exec(statement)?.[1]
      if (changed !== undefined) last.changed.set(changed, file)
      if (renamed !== undefined) last.renamed.set(renamed, file)
    }
  }
  expect(last.changed.size).toBeGreaterThan(2)
  const late = [...last.changed].filter(([view, file]) => (last.renamed.get(view) ?? '') < file)
  expect(late).toEqual([])
})

it('refuses a file name without a number', () => {
  expect(() => parseMigration('spans.sql', '')).toThrow(/0001_what_it_makes/)
})

it('fills placeholders and refuses an unknown placeholder', () => {
  expect(fillPlaceholders(`a \${database} b`, new Map([['database', 'penstock']]))).toBe('a penstock b')
  expect(() => fillPlaceholders(`\${constructor}`, new Map())).toThrow(PermanentError)
})

it('no released migration has changed by a byte: databases compare the checksums of the files that they have applied', () => {
  const listed = readFileSync(new URL('released-migrations.sha256', import.meta.url), 'utf8')
    .trim()
    .split('\n')
  const directory = new URL('../migrations/', import.meta.url)
  const present = readdirSync(directory).map(file => {
    const digest = createHash('sha256')
      .update(readFileSync(new URL(file, directory)))
      .digest('hex')
    return `${digest}  ${file}`
  })
  expect(present.sort()).toEqual(listed.sort())
})
