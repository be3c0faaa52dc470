import type { LocalSecrets } from '../../deploy/local/workspace/secrets.ts'
import { tracePayload } from '../payloads/trace-payload.ts'
import { pollUntil } from '../support/poll-until.ts'

/** A stored trace, and the request that reads it (docs/api/findings.md#trace). */
interface LargeTrace {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly spans: number
}

const SPANS = 1_000
const DEADLINE_MS = 20_000

/** Sends a trace of 1,000 spans with exceptions, and waits until it can be read. */
export async function storeLargeTrace(edgeUrl: string, apiUrl: string, secrets: LocalSecrets): Promise<LargeTrace> {
  const sent = await fetch(`${edgeUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': secrets.publicKey, 'content-type': 'application/x-protobuf' },
    body: tracePayload({ spans: SPANS, spansPerTrace: SPANS, exceptionEvery: SPANS / 2 }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  if (sent.status !== 200) throw new Error(`the edge returned ${sent.status}: ${await sent.text()}`)
  const headers = { authorization: `Bearer ${secrets.sessionToken}` }
  const firstId = async (path: string, list: 'findings' | 'traces'): Promise<string> => {
    let id: string | undefined
    await pollUntil(`there are ${list}`, DEADLINE_MS, async () => {
      const page = JSON.parse(await read({ url: apiUrl + path, headers })) as Record<string, { id: string }[]>
      id = page[list]?.[0]?.id
      return id !== undefined
    })
    return id as string
  }
  const finding = `/v3/findings/${await firstId('/v3/findings', 'findings')}`
  const url = `${apiUrl}${finding}/traces/${await firstId(`${finding}/traces`, 'traces')}`
  return { url, headers, spans: SPANS }
}

/** Reads the trace repeatedly with several readers. Resolves with the number of reads. */
export async function readLargeTrace(trace: LargeTrace, readers: number, durationMs: number): Promise<number> {
  const end = performance.now() + durationMs
  let reads = 0
  const readOn = async () => {
    while (performance.now() < end) {
      await read(trace)
      reads++
    }
  }
  await Promise.all(Array.from({ length: readers }, readOn))
  return reads
}

async function read({ url, headers }: Pick<LargeTrace, 'url' | 'headers'>): Promise<string> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(DEADLINE_MS) })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`the API returned ${response.status}: ${text}`)
  return text
}
