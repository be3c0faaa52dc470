import { computed, useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { keysOf } from '../entries.ts'
import { useFollowed } from '../follow.ts'
import type { Player } from '../player.ts'
import { clockTime } from '../words.ts'

/** Entries around the time that are shown. */
const SHOWN = 200

/** The console and the requests that were recorded, around the time that is shown. */
export function RecordedList({ player, onSeek }: { readonly player: Player; readonly onSeek: (at: number) => void }) {
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
