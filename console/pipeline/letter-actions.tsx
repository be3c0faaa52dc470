import { useState } from 'preact/hooks'
import { purgeDeadLetters, replayDeadLetters } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { Confirmed } from '../ui/changes.tsx'

/** Letters by their ids, or all that a filter selects. */
export type LetterSelection = Pick<Parameters<typeof purgeDeadLetters>[0]['body'], 'ids' | 'filter'>

/** What a replay or a purge has done so far. */
interface Progress {
  readonly done: number
  readonly skipped: readonly string[]
}

/** Buttons that replay and purge dead letters. Each asks first. A step does at most 500, and the next one continues after it. */
export function LetterActions(props: {
  readonly selection: LetterSelection
  readonly what: string
  readonly onDone: () => void
}) {
  const { selection, what, onDone } = props
  const [result, setResult] = useState('')
  const work =
    (verb: 'replayed' | 'purged') =>
    async (signal: AbortSignal): Promise<void> => {
      let cursor: string | null = null
      let progress: Progress = { done: 0, skipped: [] }
      do {
        const body: Parameters<typeof purgeDeadLetters>[0]['body'] = { ...selection, ...(cursor && { cursor }) }
        if (verb === 'replayed') {
          const step = await replayDeadLetters({ body }, { signal })
          progress = add(progress, step.replayed, step.skipped)
          cursor = step.nextCursor
        } else {
          const step = await purgeDeadLetters({ body }, { signal })
          progress = add(progress, step.purged, step.skipped)
          cursor = step.nextCursor
        }
        setResult(textOf(progress, verb))
      } while (cursor !== null)
    }
  return (
    <p class="panel-links">
      <Confirmed
        label="Store again"
        what={what}
        title={`Store ${what} again?`}
        word="store"
        isSafe
        change={work('replayed')}
        onDone={onDone}
      >
        <p>The requests are put back into their queues, each exactly once. Mend first whatever refused them.</p>
      </Confirmed>
      <Confirmed
        label="Purge"
        what={what}
        title={`Purge ${what}?`}
        word="purge"
        change={work('purged')}
        onDone={onDone}
      >
        <p>The requests are deleted with their bytes, for good. They can never be stored then.</p>
      </Confirmed>
      <span role="status">{result}</span>
    </p>
  )
}

function add({ done, skipped }: Progress, more: number, left: readonly { readonly reason: string }[]): Progress {
  const reasons = left.map(({ reason }) => reason.replaceAll('_', ' '))
  return { done: done + more, skipped: [...new Set([...skipped, ...reasons])] }
}

function textOf({ done, skipped }: Progress, verb: string): string {
  return `${counted(done, 'dead letter')} ${verb}${skipped.length > 0 ? `; others left: ${skipped.join(', ')}` : ''}`
}
