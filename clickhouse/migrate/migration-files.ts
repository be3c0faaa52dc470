import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PermanentError } from '../../shared/runtime/errors.ts'

/** The folder of the migrations of this version. */
export const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url))

/** A file of clickhouse/migrations. */
export interface Migration {
  readonly id: number
  readonly fileName: string
  /** SHA-256 of the file in hex, before placeholders are filled, so that settings may change. */
  readonly checksum: string
  readonly statements: readonly string[]
  /** Whether it may only run while no workers do: an insert within it would be in some of the tables. */
  readonly needsQuiet: boolean
}

/** The line of a migration that needs quiet. */
const NEEDS_QUIET = /^-- Run it while no workers do\b/m

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/

/** Reads `0001_name.sql`, … in the order of their numbers. Throws a PermanentError that names the invalid file. */
export async function readMigrations(directory: string): Promise<Migration[]> {
  const fileNames = (await readdir(directory)).filter(name => name.endsWith('.sql')).sort()
  const migrations = await Promise.all(
    fileNames.map(async fileName => parseMigration(fileName, await readFile(join(directory, fileName), 'utf8'))),
  )
  const repeated = migrations.find((migration, i) => migration.id === migrations[i - 1]?.id)
  if (repeated)
    throw new PermanentError(
      `${repeated.fileName}: another migration has the number ${repeated.id}: take the next free number`,
    )
  return migrations
}

/** Splits a migration into statements. Throws a PermanentError if it is misnamed or a statement is not repeatable. */
export function parseMigration(fileName: string, text: string): Migration {
  const id = FILE_NAME.exec(fileName)?.[1]
  if (id === undefined) throw new PermanentError(`${fileName}: rename the migration like 0001_what_it_makes.sql`)
  const checksum = createHash('sha256').update(text).digest('hex')
  const statements = splitStatements(text)
  for (const statement of statements) {
    if (!isRepeatable(statement)) {
      throw new PermanentError(
        `${fileName}: a statement is not repeatable, add IF [NOT] EXISTS: ${firstLine(statement)}`,
      )
    }
  }
  return { id: Number(id), fileName, checksum, statements, needsQuiet: NEEDS_QUIET.test(text) }
}

/** Replaces `${name}` with values that the caller has checked. Throws a PermanentError for an unknown placeholder. */
export function fillPlaceholders(statement: string, values: ReadonlyMap<string, string>): string {
  return statement.replaceAll(/\$\{([^}]*)\}/g, (_, name: string) => {
    const value = values.get(name)
    if (value === undefined) throw new PermanentError(`a migration has the unknown placeholder \${${name}}`)
    return value
  })
}

/** Splits at `;` at the end of a line and removes lines that begin with `--`. */
function splitStatements(text: string): string[] {
  const code = text.replaceAll(/^[ \t]*--.*$/gm, '')
  return code
    .split(/;[ \t\r]*$/m)
    .map(statement => statement.trim())
    .filter(statement => statement !== '')
}

/** Returns whether a statement can run twice. After a crash between two statements the next run repeats the first. */
function isRepeatable(statement: string): boolean {
  if (/^CREATE\b/i.test(statement)) return /^CREATE (OR REPLACE\b|.*?\bIF NOT EXISTS\b)/is.test(statement)
  if (/^DROP\b/i.test(statement)) return /^DROP .*?\bIF EXISTS\b/is.test(statement)
  if (/^EXCHANGE\b/i.test(statement)) return false
  if (/^RENAME\b/i.test(statement)) return /^RENAME TABLE IF EXISTS\b/i.test(statement)
  const additions = statement.match(/\bADD (COLUMN|INDEX|PROJECTION|CONSTRAINT)\b(?! IF NOT EXISTS)/i)
  const removals = statement.match(/\b(DROP|CLEAR|RENAME) (COLUMN|INDEX|PROJECTION|CONSTRAINT)\b(?! IF EXISTS)/i)
  return additions === null && removals === null
}

function firstLine(statement: string): string {
  return statement.split('\n', 1)[0]?.slice(0, 120) ?? ''
}
