import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Session } from '../api/generated/client.ts'
import type { SessionClock } from '../replay/session-clock.ts'
import { Guarded, Loading, Notice } from '../ui/states.tsx'
import { Timeline } from './timeline.tsx'

type Replay = ComponentType<{ readonly sessionId: string; readonly onClock: (clock: SessionClock) => void }>

/** The recording of a session, and everything else of it on the same clock. */
export function Story({ session }: { readonly session: Session }) {
  const [clock, setClock] = useState<SessionClock>()
  const [replay, setReplay] = useState<{ readonly View: Replay } | 'missing'>()
  const isRecorded = session.replay !== null
  useEffect(() => {
    if (!isRecorded) return
    import('../replay/replay-section.tsx').then(
      ({ ReplaySection: View }) => setReplay({ View }),
      () => setReplay('missing'),
    )
  }, [isRecorded])
  return (
    <>
      {!isRecorded && <p class="quiet">This session has no recording, or its retention has ended.</p>}
      {isRecorded && replay === undefined && <Loading text="Loading the player" />}
      {replay === 'missing' && (
        <Notice title="The player could not be loaded" text="The console was updated, or the connection is lost.">
          <button type="button" onClick={() => location.reload()}>
            Load again
          </button>
        </Notice>
      )}
      {replay !== undefined && replay !== 'missing' && (
        <Guarded what="The recording">
          <replay.View sessionId={session.id} onClock={setClock} />
        </Guarded>
      )}
      <Timeline id={session.id} startedAt={session.firstSeenAt} clock={clock} />
    </>
  )
}
