import { afterAll, expect } from 'vitest'
import {
  type LogHistogram,
  type LogRecord,
  type LogsPage,
  logHistogramSchema,
  logsPageSchema,
} from '../../../../schemas/http/logs.ts'
import { createDatabase, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { insertLogs, type StoredLog } from '../../../support/workspaces/log-rows.ts'

const DATABASE = `api_logs_${process.pid}_${Date.now()}`
/** Most stored records that a query of a search may read in these tests. */
const SEARCH_ROWS = 40_000

const services = sharedServices()
export const client = await createDatabase(services.clickhouseUrl, DATABASE)
await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
const api = await startApi(services, DATABASE, { LOG_SEARCH_ROWS: String(SEARCH_ROWS) })
const token = await signToken()
export const otherToken = await signToken({ org: 'globex', sub: 'user_2' })

afterAll(async () => {
  await api.stop()
  await client.command({ query: `DROP DATABASE ${DATABASE}` })
  await client.close()
})

export const nanos = (unixMs: number) => BigInt(unixMs) * 1_000_000n
export const hex = (digit: string, length: number) => digit.repeat(length)
export const store = (logs: readonly StoredLog[]) => insertLogs(client, logs)

/** Query of a time. */
export function between(fromMs: number, toMs: number): string {
  return String(new URLSearchParams({ from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }))
}

export async function ask(path: string, bearer = token): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${api.baseUrl}/v3/logs${path}`, { headers: { authorization: `Bearer ${bearer}` } })
  return { status: response.status, body: await response.json() }
}

export async function list(query: string, bearer = token): Promise<LogsPage> {
  const { status, body } = await ask(`?${query}`, bearer)
  expect({ status, body }).toMatchObject({ status: 200 })
  return logsPageSchema.parse(body)
}

/** Follows a list to its end and returns its pages. */
export async function follow(query: string, onPage: () => Promise<unknown> = async () => {}): Promise<LogRecord[][]> {
  const pages: LogRecord[][] = []
  let cursor = ''
  for (;;) {
    const { logs, nextCursor } = await list(`${query}${cursor}`)
    pages.push(logs)
    if (nextCursor === null) return pages
    cursor = `&cursor=${nextCursor}`
    await onPage()
  }
}

export async function histogram(query: string): Promise<LogHistogram> {
  const { status, body } = await ask(`/histogram?${query}`)
  expect({ status, body }).toMatchObject({ status: 200 })
  return logHistogramSchema.parse(body)
}
