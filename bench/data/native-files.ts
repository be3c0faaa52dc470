import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { quoteIdentifier } from '../../clickhouse/quote.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { createChanges, findRenewable, renew } from '../load/renewal.ts'
import { buildBodies } from '../load/requests.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../services/start-stores.ts'

/** Name of this contender in reports. */
export const FILE_INSERTS = 'ClickHouse alone, the same rows from files'

/**
 * Files of a million spans in total, so that no block is inserted often in a round. Blocks are as large as the worker's
 * batches.
 */
const FILES = 10
const ROWS = 100_000
const SPANS = 200

interface NativeFile {
  readonly path: string
  readonly rows: number
  readonly columns: readonly string[]
}

/** Measures the limit of any pipeline: ClickHouse reads the product's blocks from files, with one insert per core. */
export async function startFileInserts(dir: string, { client, pid }: BenchClickHouse): Promise<PipelineContender> {
  const files = await writeNativeFiles(join(dir, 'native'))
  return {
    name: FILE_INSERTS,
    pids: { ClickHouse: pid },
    database: BENCH_DATABASE,
    table: 'spans',
    async send(_load, durationMs, onBegin) {
      onBegin()
      const until = performance.now() + durationMs
      let turn = 0
      let accepted = 0
      const insertInTurn = async () => {
        while (performance.now() < until) {
          const file = files[turn++ % files.length] as NativeFile
          await insertFile(client, file)
          accepted += file.rows
        }
      }
      await Promise.all(Array.from({ length: availableParallelism() }, insertInTurn))
      return { accepted }
    },
  }
}

async function insertFile(client: BenchClickHouse['client'], { path, columns }: NativeFile): Promise<void> {
  const names = columns.map(quoteIdentifier).join(', ')
  await client.command({
    query: `INSERT INTO spans (${names}) SELECT ${names} FROM file({path: String}, 'Native')`,
    query_params: { path },
    // The same file is inserted again and must be stored again.
    clickhouse_settings: { insert_deduplicate: 0, wait_end_of_query: 1 },
  })
}

/** Writes one block a file, with ids that no other file has. */
async function writeNativeFiles(dir: string): Promise<NativeFile[]> {
  await mkdir(dir, { recursive: true })
  const bodies = buildBodies({ spans: SPANS, pool: 64, freshIds: true })
  const fields = bodies.map(body => findRenewable('traces', body))
  const nextChange = createChanges(Date.now())
  const batch = createSpansBatch()
  const files: NativeFile[] = []
  for (let i = 0; i < FILES; i++) {
    for (let turn = 0; batch.rows < ROWS; turn++) {
      const at = turn % bodies.length
      const body = bodies[at] as Buffer
      renew(body, fields[at] as (typeof fields)[number], nextChange(), performance.timeOrigin + performance.now())
      const result = batch.append({ workspaceId: 'ws_files', surfaceId: 'srf_files', receivedAtMs: Date.now() }, body)
      if (!result.ok) throw new Error(`a payload of the bench was refused: ${result.reason}`)
    }
    const [block] = batch.tables()
    if (block?.table !== 'spans') throw new Error('the block is not for the table spans')
    const path = join(dir, `${i}.native`)
    await writeFile(path, Buffer.concat(block.block))
    files.push({ path, rows: block.rows, columns: block.columns })
    batch.reset()
  }
  return files
}
