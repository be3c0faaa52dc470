import type { Row } from '../../support/scenario.ts'
import { measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

/** A read of one workspace through the API. */
export interface CheckedRead {
  readonly name: string
  /** Path and query of the i-th request. */
  path(i: number): string
  /** Returns how many rows a body shows. */
  count(body: string): number
  /** Least number of rows of each answer. */
  readonly atLeast: number
}

/** Measures reads one after the other. */
export async function measureCheckedReads(
  { reader, client }: Pick<ReadDeps, 'reader' | 'client'>,
  workspaceId: string,
  reads: readonly CheckedRead[],
  plan: ReadPlan,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, path, count, atLeast } of reads) {
    const get = async (i: number) => {
      const body = await reader.get(workspaceId, path(i))
      const found = count(body)
      if (found < atLeast) throw new Error(`${name} returned ${found} rows instead of ${atLeast}: ${path(i)}`)
      return body
    }
    rows.push(...(await measureGets(client, { name, get }, plan)))
  }
  return rows
}
