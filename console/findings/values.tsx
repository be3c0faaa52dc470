import { type FindingValues, readFindingValues, type ValueCounts } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, place } from '../state/router.ts'
import { rangeKey, type timesOf } from '../state/time-range.ts'
import { Shown } from '../ui/states.tsx'
import { Fact, Facts } from '../ui/text.tsx'

/** Whom a finding has hit in a time, and where. */
export function Values({ id, times }: { readonly id: string; readonly times: ReturnType<typeof timesOf> }) {
  const loaded = useLoad(`values of ${id} ${rangeKey(place.value.query)}`, signal =>
    readFindingValues({ findingId: id, ...times }, { signal }),
  )
  return (
    <section>
      <h2>Who and where</h2>
      <Shown loaded={loaded} what="who and where">
        {values => (
          <>
            <Facts>
              <Fact name="People">{values.people.identifiedCount.toLocaleString()}</Fact>
              <Fact name="Sessions">{values.sessionCount.toLocaleString()}</Fact>
              <Fact name="Anonymous sessions">{values.anonymousSessionCount.toLocaleString()}</Fact>
            </Facts>
            {values.examinedCount < values.occurrenceCount && (
              <p class="quiet">
                Of the newest {counted(values.examinedCount, 'occurrence')} of {values.occurrenceCount.toLocaleString()}
                .
              </p>
            )}
            <div class="columns">
              <People top={values.people.top} />
              {KINDS.map(([name, kind]) => (
                <Kind key={kind} name={name} counts={values[kind]} />
              ))}
            </div>
          </>
        )}
      </Shown>
    </section>
  )
}

const KINDS = [
  ['Versions', 'versions'],
  ['Browsers', 'browsers'],
  ['Systems', 'systems'],
  ['Routes', 'routes'],
  ['Environments', 'environments'],
  ['Hosts', 'hosts'],
] as const

function People({ top = [] }: Pick<FindingValues['people'], 'top'>) {
  if (top.length === 0) return null
  return (
    <section>
      <h3>People</h3>
      <ul class="entries">
        {top.map(({ identifier, sessionCount, occurrenceCount }) => (
          <li key={identifier} class="entry-head">
            <a href={addressOf('sessions', { user: identifier })}>{identifier}</a>
            <span class="quiet">
              {counted(occurrenceCount, 'occurrence')} in {counted(sessionCount, 'session')}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The most frequent values of a kind with their shares. A kind without values is left out. */
function Kind({ name, counts }: { readonly name: string; readonly counts: ValueCounts }) {
  if (counts.values.length === 0) return null
  return (
    <section>
      <h3>{name}</h3>
      <ul class="entries">
        {counts.values.map(({ value, count, share }) => (
          <li key={value} class="entry-head">
            <span>{value}</span>
            <span class="quiet" title={counted(count, 'occurrence')}>
              {percent(share)}
            </span>
          </li>
        ))}
        {counts.otherCount > 0 && <li class="quiet">Others: {counted(counts.otherCount, 'occurrence')}</li>}
        {counts.absentCount > 0 && <li class="quiet">Not stated: {counted(counts.absentCount, 'occurrence')}</li>}
      </ul>
    </section>
  )
}

function percent(share: number): string {
  return share > 0 && share < 0.01 ? 'under 1 %' : `${Math.round(share * 100)} %`
}
