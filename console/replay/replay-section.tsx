import { useEffect, useMemo, useRef } from 'preact/hooks'
import { readSessionTimeline } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, go, place } from '../state/router.ts'
import { Notice, Shown } from '../ui/states.tsx'
import { loadChunks } from './load-recording.ts'
import { Player, SPEEDS } from './player.ts'
import { type Recording, recordingOf } from './recording.ts'
import type { SessionClock } from './session-clock.ts'
import { errorsOf } from './session-errors.ts'
import { PlayerView } from './view/player-view.tsx'
import { RecordedList } from './view/recorded-list.tsx'

/** Findings of a session among which the player goes. */
const FINDINGS_MAX = 500

interface Props {
  readonly sessionId: string
  readonly onClock: (clock: SessionClock) => void
}

/** The recording of a session. Its address names the time, the speed and the window, where they are not the usual ones. */
export function ReplaySection({ sessionId, onClock }: Props) {
  const chunks = useLoad(sessionId, signal => loadChunks(sessionId, signal))
  const recording = useMemo(() => chunks.value && recordingOf(chunks.value), [chunks.value])
  return (
    <section>
      <h2>Recording</h2>
      <Shown loaded={chunks} what="the recording">
        {() =>
          recording === undefined ? (
            <Notice title="No recording" text="Its chunks are not stored yet, or their retention has ended." />
          ) : (
            <Played sessionId={sessionId} recording={recording} onClock={onClock} />
          )
        }
      </Shown>
    </section>
  )
}

function Played({ sessionId, recording, onClock }: Props & { readonly recording: Recording }) {
  const { query } = place.value
  const speed = SPEEDS.find(value => String(value) === query.get('speed')) ?? 1
  const window = recording.windows.find(({ id }) => id === query.get('window'))?.id
  const player = useMemo(() => {
    const created = new Player(sessionId, recording)
    created.chosen.value = window
    return created
  }, [sessionId, recording])
  useEffect(() => {
    player.speed.value = speed
    if (player.chosen.value !== window) player.choose(window)
  }, [player, speed, window])
  const findings = useLoad(sessionId, signal =>
    readSessionTimeline({ sessionId, kinds: 'finding', limit: FINDINGS_MAX }, { signal }),
  )
  const recorded = player.entries.value
  const errors = useMemo(() => errorsOf(findings.value?.entries ?? [], recorded), [findings.value, recorded])
  player.errorTimes = errors.map(({ at }) => at)

  const stood = useRef(place.value.query.get('t'))
  const keep = (changes: Readonly<Record<string, string | undefined>>) => {
    const { path, query: kept } = place.value
    go(addressOf(path, { ...Object.fromEntries(kept), ...changes }), { replace: true })
  }
  const stand = (at: number) => {
    stood.current = new Date(at).toISOString()
    keep({ t: stood.current })
  }
  const seek = (at: number) => {
    player.seek(at)
    stand(player.time.value)
  }
  useEffect(() => onClock({ time: player.time, seek }), [player])
  const named = query.get('t')
  useEffect(() => {
    if (named === stood.current) return
    stood.current = named
    const at = Date.parse(named ?? '')
    if (Number.isFinite(at)) player.seek(at)
  }, [player, named])
  const wanted = Date.parse(stood.current ?? '')
  return (
    <>
      <PlayerView
        player={player}
        startsAt={Number.isFinite(wanted) ? wanted : recording.startMs}
        errors={errors}
        onStand={stand}
        onChoose={keep}
      />
      <RecordedList player={player} onSeek={seek} />
    </>
  )
}
