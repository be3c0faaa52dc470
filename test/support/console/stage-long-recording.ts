import { until } from '../until.ts'
import { longRecording } from './long-recording.ts'
import { uploadChunk } from './staged-recording.ts'

const SENDERS = 8

/** Stores a recording of three windows as a session. Returns the number of its chunks, and of the bytes of their events. */
export async function stageLongRecording(
  access: { readonly baseUrl: string; readonly publicKey: string; readonly sessionToken: string },
  session: string,
  startMs: number,
  seconds: number,
): Promise<{ readonly chunks: number; readonly bytes: number }> {
  const recording = longRecording(startMs, seconds)
  let [chunks, bytes] = [0, 0]
  const uploadAll = async () => {
    for (const chunk of recording) {
      chunks++
      bytes += JSON.stringify(chunk.events).length
      await uploadChunk(access, session, chunk)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, uploadAll))
  const headers = { authorization: `Bearer ${access.sessionToken}` }
  await until(
    'everything is stored',
    async () => {
      const response = await fetch(`${access.baseUrl}/v3/sessions/${session}`, { headers })
      if (!response.ok) return false
      const answer = (await response.json()) as { session: { replay: { chunkCount: number } | null } }
      return answer.session.replay?.chunkCount === chunks
    },
    { deadlineMs: 120_000, everyMs: 200 },
  )
  return { chunks, bytes }
}
