import { type ClickHouseClient, createClickHouse } from '../../../../clickhouse/client.ts'
import { type Stack, startStack } from '../../services/stack.ts'
import { type SdkPages, type SdkPagesOptions, serveSdkPages } from './serve-sdk-pages.ts'

/** The product, and pages with the browser package that send to it. */
export interface SdkStage {
  readonly stack: Stack
  readonly pages: SdkPages
  /** Returns rows of the database. */
  rows<T>(query: string): Promise<T[]>
  stop(): Promise<void>
}

/** Starts the product and pages that are recorded, unless the options of `init` are other ones. */
export async function startSdkStage(
  options: Omit<SdkPagesOptions, 'ingestUrl' | 'apiUrl' | 'key'> = {},
): Promise<SdkStage> {
  const stack = await startStack()
  const { ingestUrl, apiUrl, secrets, services } = stack
  const clickhouse: ClickHouseClient = createClickHouse({ url: services.clickhouseUrl, database: 'penstock' })
  const sender = { ingestUrl, apiUrl, key: secrets.publicKey }
  const pages = await serveSdkPages({ ...sender, options: { recording: { sample: 1 } }, ...options })
  return {
    ...{ stack, pages },
    async rows<T>(query: string) {
      return (await clickhouse.query({ query, format: 'JSONEachRow' })).json<T>()
    },
    async stop() {
      await pages.stop()
      await clickhouse.close()
      await stack.stop()
    },
  }
}
