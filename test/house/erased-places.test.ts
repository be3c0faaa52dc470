import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { RETAINED_TABLES } from '../../clickhouse/queries/retention/retained-tables.ts'
import { ERASED_TABLES } from '../../clickhouse/queries/sessions/session-key.ts'
import { KEY_CONTENTS, OBJECT_CONTENTS, TABLE_CONTENTS } from '../../schemas/records/erased-places.ts'
import { directoryKeys, mapKeys, upkeepKeys } from '../../shared/directory/record.ts'
import { releaseKeys } from '../../shared/directory/release-store.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { isProduct } from './code.ts'
import { ROOT, trackedFiles } from './prose.ts'

const COMPUTED = /\$\{[^}]*\}/g
const COMMENTS = /^ *(?:\*|\/\*\*|\/\/).*$/gm

/** Returns the first groups of all matches of a pattern in files, with `*` in place of what is computed. */
function namesIn(files: readonly string[], pattern: RegExp): string[] {
  const texts = files.map(file => readFileSync(ROOT + file, 'utf8').replace(COMMENTS, ''))
  const found = texts.flatMap(text => [...text.matchAll(pattern)].map(([, name = '']) => name.replace(COMPUTED, '*')))
  return [...new Set(found)].sort()
}

/** Returns the keys of a group of families. */
function keysOf(families: unknown): string[] {
  if (typeof families === 'string') return [families]
  if (typeof families === 'function') return keysOf(families('*', '*', '*'))
  return Object.values(families as object).flatMap(keysOf)
}

it('every table says what an erasure does with it, and those that it deletes from are the ones that say so', () => {
  const tables = namesIn(
    trackedFiles(ROOT).filter(file => file.startsWith('clickhouse/migrations/')),
    /CREATE TABLE IF NOT EXISTS (\w+)/g,
  )
  expect(tables.length).toBeGreaterThan(15)
  expect(Object.keys(TABLE_CONTENTS).sort()).toEqual(tables)
  const erased = Object.keys(TABLE_CONTENTS).filter(table => TABLE_CONTENTS[table] === 'erased')
  expect([...ERASED_TABLES.map(({ table }) => table), 'dead_letters'].sort()).toEqual(erased.sort())
})

it('what stays expires with the retention that a receipt states', () => {
  const staying = Object.entries(TABLE_CONTENTS).filter(([, content]) => content !== 'erased' && content !== 'none')
  for (const [table] of staying) expect(RETAINED_TABLES.map(retained => retained.table)).toContain(table)
})

it('every family of keys says what an erasure does with it', () => {
  const families = keysOf([directoryKeys, mapKeys, upkeepKeys, releaseKeys, queueKeys('traces', '*')])
  const literal = namesIn(trackedFiles(ROOT).filter(isProduct), /[`'"](penstock:\{[^`'"]*)/g)
  const listed = Object.values(KEY_CONTENTS).flat()
  const isListed = (key: string) => listed.some(name => name === key || (name.endsWith(':') && key.startsWith(name)))
  const roots = ['penstock:{*}', 'penstock:{directory}', 'penstock:{*}:*', 'penstock:{directory}:*']
  expect([...families, ...literal].filter(key => !isListed(key) && !roots.includes(key))).toEqual([])
  expect(families.length).toBeGreaterThan(60)
})

it('every kind of objects says what an erasure does with it', () => {
  const prefixes = namesIn(['shared/object-store/object-keys.ts'], /[`'](\w[\w-]*\/)/g)
  expect(prefixes).toEqual(Object.keys(OBJECT_CONTENTS).sort())
})
