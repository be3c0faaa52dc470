import type { Row } from '../../support/scenario.ts'
import { measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

/** A read of one workspace through the API, and the query of ClickHouse that reads the same rows. */
export interface ComparedRead {
  readonly name: string
  /** Path and query of the i-th request. */
  path(i: number): string
  /** Returns how many rows a body shows. */
  count(body: string): number
  /** Least number of rows of each answer. */
  readonly atLeast: number
  /** Query of the same rows in SQL. */
  alone?(i: number): string
}

/** Measures reads one after the other, each beside its query. */
export async function compareReads(
  { reader, bare, client }: ReadDeps,
  workspaceId: string,
  reads: readonly ComparedRead[],
  plan: ReadPlan,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, path, count, atLeast, alone } of reads) {
    const get = async (i: number) => {
      const body = await reader.get(workspaceId, path(i))
      const found = count(body)
      if (found < atLeast) throw new Error(`${name} returned ${found} rows instead of ${atLeast}: ${path(i)}`)
      return body
    }
    rows.push(
      ...(await measureGets(
        client,
        { name, get, count, ...(alone && { alone: (i: number) => bare.countRows(alone(i)) }) },
        plan,
      )),
    )
  }
  return rows
}
