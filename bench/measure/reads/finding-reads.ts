import type { FindingsPage } from '../../../schemas/http/findings/schemas.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { FINDINGS_WORKSPACE, FREQUENT_FINDING, fillFindings } from '../../data/fill-findings.ts'
import type { Row } from '../../support/scenario.ts'
import { settleMerges } from '../clickhouse-work.ts'
import { type Get, measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

/** Amount of findings to store and read. */
export interface FindingsSize {
  readonly occurrences: number
  readonly findings: number
  readonly reads: ReadPlan
}

const FULL_PAGE = 50

/** Stores occurrences of findings, then reads lists of findings and single findings. */
export async function measureFindingReads(deps: ReadDeps, size: FindingsSize): Promise<Row[]> {
  await fillFindings(deps.client, size.occurrences, size.findings)
  await settleMerges(deps.client)
  const { list, rare } = await firstPage(deps)
  const rows: Row[] = []
  for (const get of getsOf(deps, list.nextCursor ?? '', rare)) {
    rows.push(...(await measureGets(deps.client, get, size.reads)))
  }
  return rows
}

async function firstPage({ reader }: ReadDeps): Promise<{ list: FindingsPage; rare: string }> {
  const list = JSON.parse(await reader.get(FINDINGS_WORKSPACE, '/v3/findings')) as FindingsPage
  const rare = list.findings.find(({ id }) => id !== FREQUENT_FINDING)?.id
  if (list.findings.length !== FULL_PAGE || rare === undefined)
    throw new Error('the first page of findings is not full')
  return { list, rare }
}

function getsOf({ reader }: ReadDeps, cursor: string, rare: string): Get[] {
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS).toISOString()
  const list = (name: string, query: string, found: number = FULL_PAGE): Get => ({
    name: `findings: ${name}`,
    get: async () => {
      const body = await reader.get(FINDINGS_WORKSPACE, `/v3/findings${query}`)
      const { length } = (JSON.parse(body) as FindingsPage).findings
      if (length !== found) throw new Error(`${name} returned ${length} findings instead of ${found}`)
      return body
    },
  })
  const one = (name: string, path: string): Get => ({
    name: `findings: ${name}`,
    get: () => reader.get(FINDINGS_WORKSPACE, `/v3/findings/${path}`),
  })
  return [
    list('newest', ''),
    list('second page', `?cursor=${cursor}`),
    list('of a surface', '?surface=srf_3'),
    list('of a service', '?service=service-7'),
    list('of the last hour', `?from=${hoursAgo(1)}`),
    list('of the last day', `?from=${hoursAgo(24)}`),
    list('of an hour three days ago', `?from=${hoursAgo(73)}&to=${hoursAgo(72)}`),
    list('of two days', `?from=${hoursAgo(100)}&to=${hoursAgo(52)}`),
    list('text of all', '?q=cannot%20READ'),
    list('text of one', '?q=property%20471%20', 1),
    list('text of none', '?q=zebra', 0),
    one('one, a tenth of all occurrences', FREQUENT_FINDING),
    one('one, few occurrences', rare),
    one('traces of one, a tenth of all occurrences', `${FREQUENT_FINDING}/traces`),
    one('traces of one, few occurrences', `${rare}/traces`),
  ]
}
