import { useState } from 'preact/hooks'
import { DAY_MS } from '../../schemas/units.ts'
import { type Fault, faultOf } from '../api/client.ts'
import { changeFinding, commentFinding, type FindingDetails, listFindingActivity } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

const SHOWN = 20
const WEEK_MS = 7 * DAY_MS

type Change = Parameters<typeof changeFinding>[0]['changeFindingRequest']
type Activity = Awaited<ReturnType<typeof listFindingActivity>>['activity'][number]

const DONE: Readonly<Record<Activity['action'], string>> = {
  acknowledged: 'acknowledged it',
  resolved: 'resolved it',
  ignored: 'ignored it',
  reopened: 'opened it again',
  assigned: 'assigned it',
  unassigned: 'removed the assignment',
  commented: 'commented',
  merged: 'merged into it',
  split_off: 'split off',
  split: 'split it from',
}

/** The work of members on a finding: its status, comments, and who did them. */
export function Work({ finding, changed }: { readonly finding: FindingDetails; readonly changed: () => void }) {
  const [fault, setFault] = useState<Fault>()
  const [isBusy, setBusy] = useState(false)
  const [text, setText] = useState('')
  const activity = useLoad(`activity ${finding.id} ${finding.statusChangedAt}`, signal =>
    listFindingActivity({ findingId: finding.id, limit: SHOWN }, { signal }),
  )
  const run = async (work: () => Promise<unknown>) => {
    setBusy(true)
    setFault(undefined)
    try {
      await work()
      changed()
      activity.again()
    } catch (error) {
      setFault(faultOf(error))
    }
    setBusy(false)
  }
  const change = (body: Change) => void run(() => changeFinding({ findingId: finding.id, changeFindingRequest: body }))
  const comment = (event: Event) => {
    event.preventDefault()
    void run(async () => {
      await commentFinding({ findingId: finding.id, commentFindingRequest: { text } })
      setText('')
    })
  }
  return (
    <section>
      <h2>Work</h2>
      <StatusChanges finding={finding} isBusy={isBusy} change={change} />
      {fault && (
        <p role="alert" class="fault">
          This could not be done: {fault.message}.
        </p>
      )}
      <form class="comment" onSubmit={comment}>
        <label for="comment">Comment</label>
        <textarea id="comment" rows={2} value={text} onInput={event => setText(event.currentTarget.value)} />
        <button type="submit" disabled={isBusy || text.trim() === ''}>
          Comment
        </button>
      </form>
      <Shown loaded={activity} what="what was done">
        {page => <Entries of={page.activity} />}
      </Shown>
    </section>
  )
}

function StatusChanges(props: {
  readonly finding: FindingDetails
  readonly isBusy: boolean
  readonly change: (body: Change) => void
}) {
  const { finding, isBusy, change } = props
  const isClosed = finding.status === 'resolved' || finding.status === 'ignored'
  return (
    <p class="panel-links">
      {finding.status !== 'resolved' && (
        <button type="button" disabled={isBusy} onClick={() => change({ status: 'resolved' })}>
          Resolve
        </button>
      )}
      {finding.status !== 'ignored' && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => change({ status: 'ignored', ignoreUntil: new Date(Date.now() + WEEK_MS).toISOString() })}
        >
          Ignore for a week
        </button>
      )}
      {isClosed && (
        <button type="button" disabled={isBusy} onClick={() => change({ status: 'open' })}>
          Open again
        </button>
      )}
      {finding.assignee && <span class="quiet">assigned to {finding.assignee}</span>}
      {finding.ignoredUntil && (
        <span class="quiet">
          ignored until <Time iso={finding.ignoredUntil} exact />
        </span>
      )}
      {finding.regressedIn && finding.regressedIn.length > 0 && (
        <span class="quiet">
          regressed in {finding.regressedIn.filter(Boolean).join(', ') || 'a version without a name'}
        </span>
      )}
    </p>
  )
}

function whoOf({ by, via }: Activity): string {
  if (via) return `somebody with a message to ${via.receiver}`
  return by?.userId ?? 'an operator'
}

function Entries({ of: activity }: { readonly of: readonly Activity[] }) {
  return (
    <ul class="entries">
      {activity.map(entry => (
        <li key={entry.id}>
          <div class="entry-head">
            <span>{whoOf(entry)}</span> {DONE[entry.action]} {entry.assignee ?? entry.findingId}
            <span class="quiet">
              <Time iso={entry.createdAt} />
            </span>
          </div>
          {entry.text && <div class="message-whole">{entry.text}</div>}
        </li>
      ))}
    </ul>
  )
}
