import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type ClickHouseClient, classifyClickHouseError, clickHouseText } from '../client.ts'
import { quoteIdentifier, quoteText } from '../quote.ts'
import { selectRows } from '../select.ts'

/** Where a server writes a backup: a path on a disk of its configuration, which it allows for backups. */
export interface BackupPlace {
  readonly disk: string
  readonly path: string
}

/** A table of a database. */
interface TableName {
  readonly database: string
  readonly table: string
}

/** Time between two looks at an operation. */
const POLL_MS = 250
const READ_TIMEOUT_MS = 30_000
const ENDED_WELL = new Set(['BACKUP_CREATED', 'RESTORED'])
const IN_PROGRESS = new Set(['CREATING_BACKUP', 'RESTORING'])

/**
 * Runs `BACKUP` or `RESTORE` on one server and resolves when it has ended. It may take hours, so it runs without a connection and
 * is looked at meanwhile. Throws a TransientError with ClickHouse's text if it fails.
 */
export async function runOperation(
  client: ClickHouseClient,
  statement: string,
  settings: readonly string[] = [],
): Promise<void> {
  const id = randomUUID()
  await runStatement(client, `${statement} SETTINGS ${[`id = '${id}'`, ...settings].join(', ')} ASYNC`)
  for (;;) {
    const [found] = await selectRows<{ status: string; error: string }>(client, {
      query: 'SELECT toString(status) AS status, error FROM system.backups WHERE id = {id: String}',
      params: { id },
      signal: AbortSignal.timeout(READ_TIMEOUT_MS),
    })
    if (found === undefined) throw new TransientError('the server was restarted meanwhile')
    if (ENDED_WELL.has(found.status)) return
    if (!IN_PROGRESS.has(found.status)) throw new TransientError(`${found.status}: ${firstLine(found.error)}`)
    await delay(POLL_MS)
  }
}

/** Runs a statement. Throws a TransientError with ClickHouse's text, whose cause is the classified error, if it fails. */
export async function runStatement(client: ClickHouseClient, query: string): Promise<void> {
  await client.command({ query }).catch(error => {
    const classified = classifyClickHouseError(error)
    throw new TransientError(firstLine(clickHouseText(classified) ?? classified.message), { cause: error })
  })
}

/** ClickHouse adds a stack to some texts. */
const firstLine = (text: string) => (text.split(/, Stack trace|\n/, 1)[0] ?? '').slice(0, 500)

/** Returns the name of a table for SQL. */
export function quotedTable({ database, table }: TableName): string {
  return `${quoteIdentifier(database)}.${quoteIdentifier(table)}`
}

/** Returns a place for SQL, where its arguments cannot be bound. */
export function quotedPlace({ disk, path }: BackupPlace): string {
  return `Disk(${[disk, path].map(quoteText).join(', ')})`
}
