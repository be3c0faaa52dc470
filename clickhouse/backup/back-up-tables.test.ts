import { describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../client.ts'
import type { BoundQuery } from '../read-connection.ts'
import { backUpTables } from './back-up-tables.ts'
import { restoreTables } from './restore-tables.ts'

const PLACE = { disk: "it's", path: 'a\\b' }

/** A server with two tables, whose operation has these statuses, one a look. */
function serverWith(statuses: readonly { status: string; error: string }[], engine = 'MergeTree') {
  const commands: string[] = []
  const looks = [...statuses]
  const answer = ({ query }: BoundQuery): unknown[] => {
    if (query.includes('system.tables')) return ['logs', 'spans'].map(name => ({ name, engine }))
    const look = looks.shift()
    return look === undefined ? [] : [look]
  }
  const client = {
    reads: {
      async read(query: BoundQuery, onChunk: (chunk: Buffer) => void) {
        onChunk(Buffer.from(JSON.stringify(answer(query))))
        return ''
      },
    },
    command: async ({ query }: { query: string }) => void commands.push(query),
  }
  return { client: client as unknown as ClickHouseClient, commands }
}

describe('a backup of the tables of a server', () => {
  it('ends when the server has written it, with every argument quoted', async () => {
    const { client, commands } = serverWith([
      { status: 'CREATING_BACKUP', error: '' },
      { status: 'BACKUP_CREATED', error: '' },
    ])
    await backUpTables(client, 'penstock', PLACE)
    expect(commands).toHaveLength(1)
    expect(commands[0]).toMatch(
      /^BACKUP TABLE `penstock`\.`logs`, TABLE `penstock`\.`spans` TO Disk\('it\\'s', 'a\\\\b'\) SETTINGS id = '[\w-]+' ASYNC$/,
    )
  })

  it('first fetches what a replica lacks', async () => {
    const { client, commands } = serverWith([{ status: 'BACKUP_CREATED', error: '' }], 'ReplicatedReplacingMergeTree')
    await backUpTables(client, 'penstock', PLACE)
    expect(commands.slice(0, 2)).toEqual([
      'SYSTEM SYNC REPLICA `penstock`.`logs` LIGHTWEIGHT',
      'SYSTEM SYNC REPLICA `penstock`.`spans` LIGHTWEIGHT',
    ])
    expect(commands[2]).toMatch(/^BACKUP /)
  })

  it.each([
    ['fails', [{ status: 'BACKUP_FAILED', error: 'no space, Stack trace' }], /BACKUP_FAILED: no space$/],
    ['is forgotten by the server', [], /the server was restarted meanwhile/],
  ])('that %s is an error', async (_, statuses, message) => {
    await expect(backUpTables(serverWith(statuses).client, 'penstock', PLACE)).rejects.toThrow(message)
  })
})

it('restores tables of one database into those of another', async () => {
  const { client, commands } = serverWith([{ status: 'RESTORED', error: '' }])
  await restoreTables(client, 'copy', { database: 'penstock', tables: ['logs'], place: { disk: 'd', path: 'p' } })
  expect(commands[0]).toMatch(
    /^RESTORE TABLE `penstock`\.`logs` AS `copy`\.`logs` FROM Disk\('d', 'p'\) SETTINGS id = '[\w-]+', allow_different_table_def = 1, allow_non_empty_tables = 1 ASYNC$/,
  )
})
