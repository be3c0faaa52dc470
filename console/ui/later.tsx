import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** A part of a page that is loaded when it is first shown, so that the first load is small. */
export function Later<P extends object>({
  load,
  props,
}: {
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}) {
  const [part, setPart] = useState<{ readonly Part: ComponentType<P> } | 'missing'>()
  useEffect(() => {
    let isLeft = false
    load().then(
      Part => isLeft || setPart({ Part }),
      () => isLeft || setPart('missing'),
    )
    return () => {
      isLeft = true
    }
  }, [])
  if (part === undefined) return null
  if (part === 'missing') return <p role="alert">This part could not be loaded. Load the page again.</p>
  return <part.Part {...props} />
}
