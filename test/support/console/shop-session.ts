import { until } from '../until.ts'
import { shopRecording } from './shop-recording.ts'
import { uploadChunk } from './staged-recording.ts'
import { failedOrder, logExport, newTraceId, send, spanIdOf, traceExport } from './staged-telemetry.ts'

interface Access {
  readonly baseUrl: string
  readonly publicKey: string
  readonly sessionToken: string
}

/** When the order of the session fails, in ms after the beginning of its recording. */
const ORDER_MS = 30_000

/** Stores a session with a recording, an order that fails in it, and log records. Returns the id of the trace of the order. */
export async function stageShopSession(access: Access, session: string, startMs: number): Promise<string> {
  const recording = shopRecording(startMs)
  for (const chunk of recording) await uploadChunk(access, session, chunk)
  const traceId = newTraceId()
  await send(access, 'traces', traceExport(traceId, startMs + ORDER_MS, failedOrder(session)))
  await send(access, 'logs', logExport(traceId, spanIdOf(4), session, startMs + ORDER_MS + 1_000))
  const headers = { authorization: `Bearer ${access.sessionToken}` }
  await until('everything is stored', async () => {
    const replay = await fetch(`${access.baseUrl}/v3/sessions/${session}/replay`, { headers })
    const rest = await fetch(`${access.baseUrl}/v3/sessions/${session}/timeline?kinds=finding,log`, { headers })
    if (!replay.ok || !rest.ok) return false
    const { chunks } = (await replay.json()) as { chunks: unknown[] }
    const { entries } = (await rest.json()) as { entries: { kind: string }[] }
    return chunks.length === recording.length && entries.some(({ kind }) => kind === 'finding') && entries.length >= 2
  })
  return traceId
}
