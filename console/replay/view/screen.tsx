import { useComputed } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Failed } from '../../ui/states.tsx'
import type { Player } from '../player.ts'
import { stretchAt } from '../recording.ts'
import { explain } from '../words.ts'

/** Share of the height of the page that the picture has at most. */
const HEIGHT_SHARE = 0.58

/** The picture, as large as there is room for it, and why there is nothing to see. */
export function Screen({ player, startsAt }: { readonly player: Player; readonly startsAt: number }) {
  const box = useRef<HTMLDivElement>(null)
  const frame = useRef<HTMLIFrameElement>(null)
  const [width, setWidth] = useState(0)
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    if (!box.current || !frame.current) return
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width))
    observer.observe(box.current)
    player.attach(frame.current, startsAt)
    return () => {
      observer.disconnect()
      player.close()
    }
  }, [player])
  const hasPicture = player.hasPicture.value
  useEffect(() => {
    if (hasPicture) setShown(true)
  }, [hasPicture])

  const size = player.size.value
  const scale = Math.min(width / size.width || 1, (innerHeight * HEIGHT_SHARE) / size.height, 1)
  return (
    <div class="screen" ref={box}>
      <div
        class={isShown ? 'screen-picture' : 'screen-picture empty'}
        style={{ width: `${size.width * scale}px`, height: `${size.height * scale}px` }}
      >
        <iframe
          ref={frame}
          title="Recording of the page"
          aria-hidden="true"
          tabIndex={-1}
          class={isShown ? undefined : 'unseen'}
          style={{ width: `${size.width}px`, height: `${size.height}px`, transform: `scale(${scale})` }}
        />
        <Note player={player} isShown={isShown} />
      </div>
    </div>
  )
}

/** States why the picture is not that of the time, or why there is none. */
function Note({ player, isShown }: { readonly player: Player; readonly isShown: boolean }) {
  const fault = player.fault.value
  const current = useComputed(() => player.shown.value && stretchAt(player.shown.value, player.time.value))
  if (player.hasFailed.value) {
    return (
      <div class="screen-note failed" role="alert">
        The player did not start. Load the page again; if it stays so, this browser cannot play recordings.
      </div>
    )
  }
  if (fault) return <Failed fault={fault} again={() => player.retry()} />
  const stretch = current.value
  if (stretch === undefined) {
    return (
      <div class="screen-note">This window was not open at this time.{isShown && ' The last picture is shown.'}</div>
    )
  }
  if (stretch.kind !== 'played') {
    return <div class={`screen-note ${stretch.kind}`}>{explain(stretch)}</div>
  }
  if (!player.isWaiting.value) {
    if (player.hasPicture.value) return null
    return <div class="screen-note">The full snapshot of this part cannot be played, so that there is no picture.</div>
  }
  return (
    <div class="screen-note waiting">
      <span class="spinner" aria-hidden="true" /> Loading the recording…
    </div>
  )
}
