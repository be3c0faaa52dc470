import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '../../clickhouse/client.ts'

/** Rows and bytes that inserts and merges wrote to one table. */
export interface WrittenTable {
  readonly table: string
  readonly insertedRows: number
  readonly insertedBytes: number
  /** Rows of merged parts: a row counts each time it was written again. */
  readonly mergedRows: number
  readonly mergedBytes: number
  readonly inserts: number
  readonly merges: number
}

/** Rows and parts that inserts and merges wrote. */
export interface Written {
  /** Rows of all tables of the server, as ClickHouse counts them. */
  readonly insertedRows: number
  readonly mergedRows: number
  /** The parts that were seen, by table. */
  readonly tables: readonly WrittenTable[]
}

/** Watches which parts appear. */
interface PartWatch {
  /** Stops, and returns what was written since the start. Throws if a look has failed. */
  stop(): Promise<Written>
}

interface Part {
  readonly table: string
  readonly name: string
  /** 1 if the part has the rows of one insert. */
  readonly isInsert: number
  readonly rows: string
  readonly bytes: string
}

/** Small parts were seen to vanish within seconds after their merge. */
const LOOK_EVERY_MS = 500

/**
 * Watches the parts of a database, the only trace of what is merged in which table where ClickHouse keeps no
 * `system.part_log`. A part that lives shorter than the time between two looks is missed, so the figures of a table are lower
 * bounds. A part of one block is an insert, any other is a merge. The level does not show it, because an insert into a table
 * that aggregates has level 1.
 */
export async function watchParts(client: ClickHouseClient, database: string): Promise<PartWatch> {
  const seen = new Map<string, Part>()
  const before = new Set<string>()
  const stopping = new AbortController()

  async function look(each: (key: string, part: Part) => void): Promise<void> {
    const result = await client.query({
      query: `SELECT table, name, min_block_number = max_block_number AS isInsert, toString(rows) AS rows,
                toString(bytes_on_disk) AS bytes
              FROM system.parts WHERE database = {database: String}`,
      query_params: { database },
      format: 'JSONEachRow',
    })
    for (const part of await result.json<Part>()) each(`${part.table}/${part.name}`, part)
  }

  const lookAgain = () => look((key, part) => before.has(key) || seen.set(key, part))

  async function lookOn(): Promise<void> {
    while (!stopping.signal.aborted) {
      await lookAgain()
      await delay(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const rowsBefore = await countRows(client)
  await look(key => before.add(key))
  let failure: unknown
  const looking = lookOn().catch(error => {
    failure = error
  })
  return {
    async stop() {
      stopping.abort()
      await looking
      if (failure !== undefined) throw new Error('the parts could not be watched', { cause: failure })
      await lookAgain()
      const rows = await countRows(client)
      return {
        insertedRows: rows.inserted - rowsBefore.inserted,
        mergedRows: rows.merged - rowsBefore.merged,
        tables: [...Map.groupBy(seen.values(), ({ table }) => table)].map(([table, parts]) => sumOf(table, parts)),
      }
    },
  }
}

/** Returns the rows that inserts and merges of all tables wrote since the server started. */
async function countRows(client: ClickHouseClient): Promise<{ inserted: number; merged: number }> {
  const result = await client.query({
    query: "SELECT event, value FROM system.events WHERE event IN ('MergeTreeDataWriterRows', 'MergedRows')",
    format: 'JSONEachRow',
  })
  const events = new Map((await result.json<{ event: string; value: string }>()).map(row => [row.event, row.value]))
  return { inserted: Number(events.get('MergeTreeDataWriterRows') ?? 0), merged: Number(events.get('MergedRows') ?? 0) }
}

/** Returns the sums over the parts of a table. */
export function sumOf(table: string, parts: readonly Part[]): WrittenTable {
  const inserted = parts.filter(({ isInsert }) => isInsert === 1)
  const merged = parts.filter(({ isInsert }) => isInsert === 0)
  const sum = (of: readonly Part[], figure: 'rows' | 'bytes') =>
    of.reduce((total, part) => total + Number(part[figure]), 0)
  return {
    table,
    insertedRows: sum(inserted, 'rows'),
    insertedBytes: sum(inserted, 'bytes'),
    mergedRows: sum(merged, 'rows'),
    mergedBytes: sum(merged, 'bytes'),
    inserts: inserted.length,
    merges: merged.length,
  }
}
