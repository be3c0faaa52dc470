import { useEffect, useRef, useState } from 'preact/hooks'
import { type Fault, faultOf } from '../api/client.ts'

/** A change that the user makes. Its requests are not repeated by themselves: the user decides that. */
export interface Action {
  readonly isBusy: boolean
  /** Why the last change could not be made. */
  readonly fault: Fault | undefined
  /** Makes a change. Resolves with whether it was made. */
  readonly run: (change: (signal: AbortSignal) => Promise<unknown>) => Promise<boolean>
}

/** Makes changes, one at a time. A change is abandoned when its page is left. */
export function useAction(): Action {
  const [fault, setFault] = useState<Fault>()
  const [isBusy, setBusy] = useState(false)
  const left = useRef(new AbortController())
  useEffect(() => () => left.current.abort(), [])
  const run: Action['run'] = async change => {
    setBusy(true)
    setFault(undefined)
    try {
      await change(left.current.signal)
      return true
    } catch (error) {
      if (!left.current.signal.aborted) setFault(faultOf(error))
      return false
    } finally {
      if (!left.current.signal.aborted) setBusy(false)
    }
  }
  return { isBusy, fault, run }
}
