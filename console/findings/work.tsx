import { useState } from 'preact/hooks'
import { DAY_MS } from '../../schemas/units.ts'
import { type Fault, faultOf } from '../api/client.ts'
import {
  changeFinding,
  commentFinding,
  type FindingDetails,
  listFindingActivity,
  listMembers,
} from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

const SHOWN = 20
/** Members among whom one is chosen. */
const MEMBERS_MAX = 100
const WEEK_MS = 7 * DAY_MS

type Change = Parameters<typeof changeFinding>[0]['changeFindingRequest']
type Activity = Awaited<ReturnType<typeof listFindingActivity>>['activity'][number]

const DONE: Readonly<Record<Activity['action'], string>> = {
  acknowledged: 'acknowledged it',
  resolved: 'resolved it',
  ignored: 'ignored it',
  reopened: 'opened it again',
  assigned: 'assigned it to',
  unassigned: 'removed the assignment',
  commented: 'commented',
  merged: 'merged into it',
  split_off: 'split off',
  split: 'split it from',
}

/** Names of members by their ids. */
type People = ReadonlyMap<string, string>

const nameIn = (people: People, id: string) => people.get(id) ?? id

/** Returns the members of the workspace. Without the permission to see them, ids are shown. */
function usePeople(): People {
  const loaded = useLoad('members of the workspace', signal => listMembers({ limit: MEMBERS_MAX }, { signal }))
  return new Map(loaded.value?.members.map(({ id, name, email }) => [id, name ?? email ?? id]))
}

/** The work of members on a finding: its status, comments, and who did them. */
export function Work({ finding, changed }: { readonly finding: FindingDetails; readonly changed: () => void }) {
  const [fault, setFault] = useState<Fault>()
  const [isBusy, setBusy] = useState(false)
  const [text, setText] = useState('')
  const activity = useLoad(`activity ${finding.id} ${finding.statusChangedAt}`, signal =>
    listFindingActivity({ findingId: finding.id, limit: SHOWN }, { signal }),
  )
  const people = usePeople()
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
      <h2>Status and comments</h2>
      <StatusChanges finding={finding} isBusy={isBusy} change={change} />
      <Assignee finding={finding} isBusy={isBusy} change={change} people={people} />
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
        {page => <Entries of={page.activity} people={people} />}
      </Shown>
    </section>
  )
}

const IGNORES = [
  ['', 'Ignore…'],
  ['day', 'For a day'],
  ['week', 'For a week'],
  ['100', 'Until it occurs 100 more times'],
  ['ever', 'For ever'],
] as const

/** Returns the change of a choice of `IGNORES`. */
function ignoring(choice: string): Change {
  const until = (ms: number) => ({ ignoreUntil: new Date(Date.now() + ms).toISOString() })
  if (choice === 'day') return { status: 'ignored', ...until(DAY_MS) }
  if (choice === 'week') return { status: 'ignored', ...until(WEEK_MS) }
  return { status: 'ignored', ...(choice !== 'ever' && { ignoreOccurrences: Number(choice) }) }
}

interface ChangeProps {
  readonly finding: FindingDetails
  readonly isBusy: boolean
  readonly change: (body: Change) => void
}

function StatusChanges({ finding, isBusy, change }: ChangeProps) {
  const isClosed = finding.status === 'resolved' || finding.status === 'ignored'
  return (
    <p class="panel-links">
      {finding.status !== 'resolved' && (
        <button type="button" disabled={isBusy} onClick={() => change({ status: 'resolved' })}>
          Resolve
        </button>
      )}
      {finding.status !== 'ignored' && (
        <select
          aria-label="Ignore"
          disabled={isBusy}
          value=""
          onChange={({ currentTarget }) => currentTarget.value && change(ignoring(currentTarget.value))}
        >
          {IGNORES.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      )}
      {isClosed && (
        <button type="button" disabled={isBusy} onClick={() => change({ status: 'open' })}>
          Open again
        </button>
      )}
      {finding.ignoredUntil && (
        <span class="quiet">
          ignored until <Time iso={finding.ignoredUntil} exact />
        </span>
      )}
      {finding.occurrencesUntilOpen !== undefined && (
        <span class="quiet">ignored until it occurs {counted(finding.occurrencesUntilOpen, 'more time')}</span>
      )}
      {finding.regressedIn && finding.regressedIn.length > 0 && (
        <span class="quiet">
          regressed in {finding.regressedIn.filter(Boolean).join(', ') || 'a version without a name'}
        </span>
      )}
    </p>
  )
}

/** The member who works on the finding. */
function Assignee({ finding, isBusy, change, people }: ChangeProps & { readonly people: People }) {
  const { assignee = '' } = finding
  const options = new Map([...people, ...(assignee === '' ? [] : [[assignee, nameIn(people, assignee)] as const])])
  return (
    <label class="field">
      <span>Assigned to</span>
      <select
        disabled={isBusy}
        value={assignee}
        onChange={({ currentTarget }) => change({ assignee: currentTarget.value || null })}
      >
        <option value="">Nobody</option>
        {[...options].map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function whoOf({ by, via }: Activity, people: People): string {
  if (via) return `somebody with a message to ${via.receiver}`
  return by ? nameIn(people, by.userId) : 'an operator'
}

function Entries({ of: activity, people }: { readonly of: readonly Activity[]; readonly people: People }) {
  return (
    <ul class="entries">
      {activity.map(entry => (
        <li key={entry.id}>
          <div class="entry-head">
            <span>{whoOf(entry, people)}</span> {DONE[entry.action]}{' '}
            {entry.assignee === undefined ? entry.findingId : nameIn(people, entry.assignee)}
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
