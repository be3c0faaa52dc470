import { Agent, request } from 'node:http'
import { BENCH_DATABASE } from '../../services/start-stores.ts'
import type { ScenarioContext } from '../../support/scenario.ts'

/** Sends queries over a connection that is kept, and nothing of the product is in between. */
export interface BareQueries {
  /** Sends a query without a FORMAT, reads the whole result and returns the number of its rows. */
  countRows(query: string): Promise<number>
}

const TIMEOUT_MS = 20_000
const NEWLINE = 10

/**
 * Connects to ClickHouse without the official client, which waits for a timer of a millisecond before each query. The condition
 * cache is off, as in the reads of the product.
 */
export function connectBare({ onEnd }: Pick<ScenarioContext, 'onEnd'>, url: string): BareQueries {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onEnd(() => agent.destroy())
  const { username, password, origin } = new URL(url)
  const settings = new URLSearchParams({
    database: BENCH_DATABASE,
    default_format: 'JSONCompactEachRow',
    wait_end_of_query: '1',
    use_query_condition_cache: '0',
  })
  return {
    countRows: query =>
      new Promise<number>((resolve, reject) => {
        const options = {
          agent,
          auth: `${username}:${password}`,
          method: 'POST',
          signal: AbortSignal.timeout(TIMEOUT_MS),
        }
        const sent = request(`${origin}/?${settings}`, options, response => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.once('error', reject)
          response.once('end', () => {
            const bytes = Buffer.concat(chunks)
            if (response.statusCode === 200) resolve(countLines(bytes))
            else reject(new Error(`ClickHouse returned ${response.statusCode}: ${bytes.toString()}`))
          })
        })
        sent.once('error', reject)
        sent.end(query)
      }),
  }
}

/** Counts lines, each of which is a row: texts have escaped line ends. */
function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++
  return lines
}
