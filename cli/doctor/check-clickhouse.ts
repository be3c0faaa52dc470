import { type ClickHouseClient, serversOf } from '../../clickhouse/client.ts'
import { selectRows } from '../../clickhouse/select.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** docs/operate/requirements.md. */
const MIN_MAJOR = 26
const TIMEOUT_MS = 5_000

/** State of a server of ClickHouse. `nowMs` is its clock, Unix ms. */
interface ServerState {
  readonly version: string
  readonly nowMs: number
}

/** Examines each server of ClickHouse: whether it answers, and its version. */
export async function checkClickHouse({ clickhouse }: Examined): Promise<Finding[]> {
  const servers = serversOf(clickhouse)
  return Promise.all(
    servers.map(async ({ name, client }) => {
      const prefix = servers.length > 1 ? `${name}: ` : ''
      try {
        const { version } = await readServer(client)
        if (Number(version.split('.', 1)[0]) >= MIN_MAJOR) return found.ok(`${prefix}ClickHouse ${version}`)
        return found.fault(`${prefix}ClickHouse ${version} is too old: ${MIN_MAJOR} or later is needed`)
      } catch (error) {
        return found.fault(`${prefix}${(error as Error).message}`)
      }
    }),
  )
}

/** Reads version and clock of a server. Throws as `selectRows` does. */
export async function readServer(client: ClickHouseClient): Promise<ServerState> {
  const [row] = await selectRows<{ version: string; nowMs: string }>(client, {
    query: 'SELECT version() AS version, toString(toUnixTimestamp64Milli(now64(3))) AS nowMs',
    params: {},
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  return { version: row?.version ?? '', nowMs: Number(row?.nowMs) }
}
