import { type Retention, readRetention } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Shown } from '../ui/states.tsx'

type Kind = keyof Retention['retention']['kinds']
type Kept = Retention['retention']['kinds'][Kind] & { readonly kind: Kind }

const NAMES: Readonly<Record<Kind, string>> = {
  traces: 'Traces',
  logs: 'Log records',
  metrics: 'Metrics',
  findings: 'Findings',
  sessions: 'Sessions',
  replay: 'Replays',
  'build-reports': 'Reports of builds',
  'dead-letters': 'Dead letters',
  releases: 'Releases and source maps',
}

const KINDS = Object.keys(NAMES) as Kind[]

const COLUMNS: readonly Column<Kept>[] = [
  { head: 'Data', cell: ({ kind }) => NAMES[kind] },
  {
    head: 'Kept for',
    isPlain: true,
    cell: ({ days, isDefault }) => (
      <>
        {days === null ? 'until deleted' : counted(days, 'day')} {isDefault && <span class="quiet">(default)</span>}
      </>
    ),
  },
]

/** How long each kind of data is kept. */
export function RetentionOfKinds() {
  const loaded = useLoad('retention', signal => readRetention({ signal }))
  return (
    <section>
      <h2>Retention</h2>
      <Shown loaded={loaded} what="the retention">
        {({ retention }) => (
          <>
            <DataTable
              caption="How long each kind of data is kept"
              columns={COLUMNS}
              rows={KINDS.map(kind => ({ kind, ...retention.kinds[kind] }))}
              keyOf={({ kind }) => kind}
            />
            <p class="quiet">
              At most {counted(retention.maxDays, 'day')}. A shorter time deletes what is older, for good:{' '}
              <code>PUT /v3/retention</code> changes it.
            </p>
          </>
        )}
      </Shown>
    </section>
  )
}
