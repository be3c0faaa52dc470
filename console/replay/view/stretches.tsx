import type { Player } from '../player.ts'
import { clockTime, explain, STRETCH_NAMES } from '../words.ts'

/** Stretches that are listed. */
const LISTED_MAX = 100
/** Pauses that are listed. Shorter ones are those of somebody who reads. */
const STILL_MS = 60_000

/** Lists what cannot be played and why, in words, with a way to the end of it. */
export function Stretches({ player, onSeek }: { readonly player: Player; readonly onSeek: (at: number) => void }) {
  const { windows } = player.recording
  const named = windows.flatMap(window =>
    window.stretches
      .filter(({ kind, from, to }) => kind !== 'played' && (kind !== 'still' || to - from > STILL_MS))
      .map(stretch => ({ window, stretch })),
  )
  if (named.length === 0) return null
  return (
    <details class="stretches">
      <summary>
        {named.length === 1 ? '1 part' : `${named.length} parts`} of the recording without a picture, or with a doubtful
        one
      </summary>
      <ul>
        {named.slice(0, LISTED_MAX).map(({ window, stretch }) => (
          <li key={`${window.id} ${stretch.from} ${stretch.kind}`}>
            <span class={`tag stretch-tag ${stretch.kind}`}>{STRETCH_NAMES[stretch.kind]}</span>
            {windows.length > 1 && `Window ${window.number}: `}
            {explain(stretch)}{' '}
            <button type="button" class="plain" onClick={() => onSeek(stretch.to)}>
              Go to {clockTime(stretch.to)}
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}
