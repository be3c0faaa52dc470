import { computed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { type ReplayChunk, readReplay, readSessionTimeline } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, go, place } from '../state/router.ts'
import { Notice, Shown } from '../ui/states.tsx'
import { keysOf } from './entries.ts'
import { type SessionClock, useFollowed } from './follow.ts'
import { Player, SPEEDS } from './player.ts'
import { type Recording, recordingOf } from './recording.ts'
import { errorsOf } from './session-errors.ts'
import { PlayerView } from './view/player-view.tsx'
import { clockTime } from './words.ts'

/** Findings of a session among which the player goes. */
const FINDINGS_MAX = 500

interface Props {
  readonly sessionId: string
  readonly onClock: (clock: SessionClock) => void
}

/** The recording of a session. Its address names the time, the speed and the window, where they are not the usual ones. */
export function ReplaySection({ sessionId, onClock }: Props) {
  const chunks = useLoad(`chunks ${sessionId}`, signal => loadChunks(sessionId, signal))
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
  const findings = useLoad(`findings of ${sessionId}`, signal =>
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
  const section = useRef<HTMLDivElement>(null)
  const seek = (at: number) => {
    player.seek(at)
    stand(player.time.value)
    // The entry that was clicked may be far below.
    section.current?.scrollIntoView({ block: 'nearest' })
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
      <div ref={section}>
        <PlayerView
          player={player}
          startsAt={Number.isFinite(wanted) ? wanted : recording.firstPictureMs}
          errors={errors}
          onStand={stand}
          onChoose={keep}
        />
      </div>
      <RecordedList player={player} onSeek={seek} />
    </>
  )
}

const PAGE_CHUNKS = 500
/** Chunks that are read: weeks of one window, 20 MB at most. */
const CHUNKS_MAX = 50_000

/** Reads the list of all chunks of a session, without their events. */
async function loadChunks(sessionId: string, signal: AbortSignal): Promise<readonly ReplayChunk[]> {
  const chunks: ReplayChunk[] = []
  let cursor: string | undefined
  do {
    const page = await readReplay({ sessionId, limit: PAGE_CHUNKS, ...(cursor && { cursor }) }, { signal })
    chunks.push(...page.chunks)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && chunks.length < CHUNKS_MAX)
  return chunks
}

/** Entries around the time that are shown. */
const SHOWN = 200

/** The console and the requests that were recorded, around the time that is shown. */
function RecordedList({ player, onSeek }: { readonly player: Player; readonly onSeek: (at: number) => void }) {
  const kind = useSignal<'console' | 'network'>('console')
  const box = useRef<HTMLOListElement>(null)
  const all = player.entries.value
  const { entries, keys, current } = useMemo(() => {
    const entries = all.filter(entry => entry.kind === kind.value)
    return {
      entries,
      keys: keysOf(entries),
      current: computed(() => entries.findLastIndex(({ at }) => at <= player.time.value)),
    }
  }, [all, kind.value])
  const first = Math.max(current.value - SHOWN / 2, 0)
  useFollowed(box, current.value - first)
  if (all.length === 0) return null
  const choose = (name: 'console' | 'network', label: string) => (
    <button type="button" aria-pressed={kind.value === name} onClick={() => (kind.value = name)}>
      {label}
    </button>
  )
  return (
    <section>
      <h2>Recorded by the page</h2>
      <div class="choices">
        {choose('console', 'Console')} {choose('network', 'Network')}
      </div>
      {entries.length === 0 && <p class="quiet">Nothing of this kind so far.</p>}
      {entries.length > 0 && (
        <ol class="timeline followed" ref={box} aria-label={kind.value === 'console' ? 'Console' : 'Requests'}>
          {entries.slice(first, first + SHOWN).map(({ at, text, isError }, i) => (
            <li key={keys[i + first]} aria-current={i + first === current.value ? 'time' : undefined}>
              <span class="timeline-time">
                <button type="button" class="plain" onClick={() => onSeek(at)} title="Go to this time">
                  {clockTime(at)}
                </button>
              </span>
              {isError && <span class="tag bad">error</span>}
              <span class="timeline-text mono">{text}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}
