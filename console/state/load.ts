import { useEffect, useState } from 'preact/hooks'
import { type Fault, faultOf } from '../api/client.ts'

/** A value that is being read. While a newer one is read, or cannot be, the last one is kept. */
export interface Loaded<T> {
  readonly value: T | undefined
  readonly fault: Fault | undefined
  readonly isLoading: boolean
  /** Reads the value again. */
  readonly again: () => void
}

const LONGEST_WAIT_MS = 5_000

/**
 * Reads a value, and again when its key changes; undefined reads nothing. A request that may succeed later is repeated until it
 * does, so that a page recovers by itself when a store is available again.
 */
export function useLoad<T>(key: string | undefined, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [round, setRound] = useState(0)
  const [kept, keep] = useState<{ readonly key?: string | undefined; readonly value?: T; readonly fault?: Fault }>({})
  const [isLoading, setLoading] = useState(true)
  useEffect(() => {
    if (key === undefined) return
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let failures = 0
    const attempt = async () => {
      setLoading(true)
      try {
        const value = await read(ended.signal)
        if (!ended.signal.aborted) keep({ key, value })
      } catch (error) {
        if (ended.signal.aborted) return
        const fault = faultOf(error)
        keep(before => ({ ...(before.key === key && 'value' in before && { value: before.value as T }), key, fault }))
        if (fault.retryAfterMs !== undefined) {
          timer = setTimeout(attempt, Math.min(fault.retryAfterMs * 2 ** failures++, LONGEST_WAIT_MS))
        }
      }
      if (!ended.signal.aborted) setLoading(false)
    }
    void attempt()
    return () => {
      ended.abort()
      clearTimeout(timer)
    }
  }, [key, round])
  const isCurrent = kept.key === key
  return {
    value: kept.value,
    fault: isCurrent ? kept.fault : undefined,
    isLoading: isLoading || !isCurrent,
    again: () => setRound(round + 1),
  }
}
