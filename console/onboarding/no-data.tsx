import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Loaded, useLoad } from '../state/load.ts'
import { Later } from '../ui/later.tsx'
import { Loading } from '../ui/states.tsx'
import { type Arrival, type ListKind, LOOKS } from './arrivals.ts'

const loadFirstData = async () => (await import('./first-data.tsx')).FirstData

/** Replaces the entries of an empty list. If nothing was ever received, shows how to send it; else its children. */
export function NoData({ kind, children }: { readonly kind: ListKind; readonly children: ComponentChildren }) {
  const { loaded, isPaused, goOn } = useArrival(kind)
  const wasNothing = useRef(false)
  const { value, fault } = loaded
  if (value === null) wasNothing.current = true
  if (!wasNothing.current) {
    // Who may not look for it reads the words of the list.
    if (value || (fault && fault.retryAfterMs === undefined)) return <>{children}</>
    return <Loading text="Looking for what was sent" />
  }
  return <Later load={loadFirstData} props={{ kind, arrival: value, isPaused, goOn }} />
}

const EVERY_MS = 2_000
/** Looks in a row, of 20 minutes. A page that is left open does not ask for ever. */
const LOOKS_MAX = 600

/** Looks for what was received: again every two seconds while there is nothing and the page is visible, up to LOOKS_MAX times. */
function useArrival(kind: ListKind): {
  readonly loaded: Loaded<Arrival | null>
  readonly isPaused: boolean
  readonly goOn: () => void
} {
  const [look, setLook] = useState(0)
  const [until, setUntil] = useState(LOOKS_MAX)
  const loaded = useLoad(`arrival ${kind} ${look}`, signal => LOOKS[kind]({ signal }))
  const isPaused = look >= until
  const isWaiting = loaded.value === null && !loaded.isLoading && !isPaused
  useEffect(() => {
    if (!isWaiting) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const wait = () => {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') timer = setTimeout(() => setLook(look + 1), EVERY_MS)
    }
    wait()
    document.addEventListener('visibilitychange', wait)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wait)
    }
  }, [isWaiting, look])
  const goOn = () => {
    setUntil(look + LOOKS_MAX)
    setLook(look + 1)
  }
  return { loaded, isPaused, goOn }
}
