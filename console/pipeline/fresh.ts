import { useEffect } from 'preact/hooks'
import { type Loaded, useLoad } from '../state/load.ts'

const EVERY_MS = 5_000

/**
 * Reads a value as `useLoad` does, and again every few seconds while the page is visible. The value that is shown does not
 * look stale meanwhile. After a fault, the repetition of `useLoad` is the only one.
 */
export function useFresh<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const loaded = useLoad(key, read)
  const { isLoading, fault, again, value } = loaded
  useEffect(() => {
    if (isLoading || fault) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const wait = () => {
      clearTimeout(timer)
      timer = document.hidden ? undefined : setTimeout(again, EVERY_MS)
    }
    wait()
    document.addEventListener('visibilitychange', wait)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wait)
    }
  }, [isLoading, fault])
  return { ...loaded, isLoading: isLoading && value === undefined }
}
