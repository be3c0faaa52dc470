import { useEffect, useState } from 'preact/hooks'
import { SECOND_MS } from '../../schemas/units.ts'
import { Follower } from '../../shared/follow/follower.ts'
import { type Fault, faultOf } from '../api/client.ts'
import { type LogRecord, listLogs, listWatermarks } from '../api/generated/client.ts'
import { LogList } from './log-list.tsx'

/** Conditions of records, without a time. */
export type TailedLogs = Omit<Parameters<typeof listLogs>[0], 'limit' | 'cursor' | '$from' | 'to' | 'receivedFrom'>

const EVERY_MS = 2 * SECOND_MS
/** Records at the beginning, and the most that are shown: the newest. */
const [FIRST, SHOWN_MAX] = [50, 1_000]
const PAGE = 500
/** Pages of one reading. No one can read what arrives faster. */
const PAGES_MAX = 20

/** The log records that arrive, the newest first, each once. */
export function LiveTail({ logs }: { readonly logs: TailedLogs }) {
  const [records, setRecords] = useState<readonly LogRecord[]>([])
  const [fault, setFault] = useState<Fault>()
  useEffect(() => {
    const ended = new AbortController()
    const follower = followerOf(logs, ended.signal)
    let timer: ReturnType<typeof setTimeout> | undefined
    let hasBegun = false
    const read = async () => {
      try {
        const arrived = hasBegun ? await follower.next() : await follower.begin(FIRST)
        hasBegun = true
        setFault(undefined)
        if (arrived.length > 0) setRecords(before => [...arrived.reverse(), ...before].slice(0, SHOWN_MAX))
      } catch (error) {
        if (!ended.signal.aborted) setFault(faultOf(error))
      }
      if (!ended.signal.aborted) timer = setTimeout(read, EVERY_MS)
    }
    void read()
    return () => {
      ended.abort()
      clearTimeout(timer)
    }
  }, [JSON.stringify(logs)])
  return (
    <>
      <p role="status" class="quiet">
        <span class="spinner" aria-hidden="true" />{' '}
        {fault ? `Records cannot be read at the moment: ${fault.message}.` : 'New records appear here as they arrive.'}
      </p>
      <LogList logs={records} />
    </>
  )
}

function followerOf(logs: TailedLogs, signal: AbortSignal): Follower<LogRecord> {
  const read = async (most: number, more: { readonly receivedFrom?: string }) => {
    const found: LogRecord[] = []
    let cursor: string | undefined
    for (let page = 0; page < PAGES_MAX && found.length < most; page++) {
      const limit = Math.min(most - found.length, PAGE)
      const answer = await listLogs({ ...logs, ...more, limit, ...(cursor && { cursor }) }, { signal })
      found.push(...answer.logs)
      if (answer.nextCursor === null) break
      cursor = answer.nextCursor
    }
    return found.reverse()
  }
  return new Follower({
    watermark: () => readWatermark(signal),
    newest: most => read(most, {}),
    since: ms => read(Number.POSITIVE_INFINITY, { receivedFrom: new Date(ms).toISOString() }),
    keyOf: record => JSON.stringify(record),
  })
}

/** Returns a time in Unix ms: all log records of the workspace that were accepted before it are stored. */
async function readWatermark(signal: AbortSignal): Promise<number> {
  let settledMs = Number.POSITIVE_INFINITY
  let cursor: string | undefined
  do {
    const page = await listWatermarks({ limit: 100, ...(cursor && { cursor }) }, { signal })
    const times = [page.readAt, ...page.watermarks.map(({ settledBefore }) => settledBefore.logs)]
    settledMs = Math.min(settledMs, ...times.map(time => Date.parse(time)))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return settledMs
}
