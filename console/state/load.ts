import { signal } from '@preact/signals'
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

/** Values that were read last, by their keys, the one that was used longest ago first. */
const remembered = new Map<string, object>()
const REMEMBERED_MAX = 50
/** Characters of a remembered value in JSON. Traces and recordings have more, and are no plain objects. */
const REMEMBERED_CHARACTERS_MAX = 1_000_000

function recall<T>(key: string): T | undefined {
  return remembered.get(key) as T | undefined
}

/** Forgets what was read, so that it is read again before it is shown. */
export function forgetValues(): void {
  remembered.clear()
}

function remember(key: string, value: unknown): void {
  remembered.delete(key)
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  if (!isPlain || JSON.stringify(value).length > REMEMBERED_CHARACTERS_MAX) return
  remembered.set(key, value)
  const [oldest] = remembered.keys()
  if (remembered.size > REMEMBERED_MAX && oldest !== undefined) remembered.delete(oldest)
}

/** Number of times that everything of the page was read again. */
const refreshes = signal(0)

/** Reads everything that the page shows again. */
export function refresh(): void {
  refreshes.value++
}

/**
 * Reads a value, and again when its key changes; undefined reads nothing. A key names what is read in the whole console: a value
 * that was read before is shown at once, and replaced when it is read again, so that a list to which the user goes back is there.
 * A request that may succeed later is repeated until it does, so that a page recovers by itself when a store is available again.
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
    const known = recall<T>(key)
    if (known !== undefined) keep(before => (before.key === key ? before : { key, value: known }))
    const attempt = async () => {
      setLoading(true)
      try {
        const value = await read(ended.signal)
        if (!ended.signal.aborted) {
          remember(key, value)
          keep({ key, value })
        }
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
  }, [key, round, refreshes.value])
  const isCurrent = kept.key === key
  const known = isCurrent || key === undefined ? undefined : recall<T>(key)
  return {
    value: known ?? kept.value,
    fault: isCurrent ? kept.fault : undefined,
    isLoading: isLoading || !isCurrent,
    again: () => setRound(round + 1),
  }
}
