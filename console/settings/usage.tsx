import { listSurfaces, listUsage, type Usage } from '../api/generated/client.ts'
import { formatBytes, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, place } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'

const PAGE_SIZE = 100

/** Requests, records and bytes that surfaces have sent, by day. */
export function UsagePerDay() {
  const { query } = place.value
  const loaded = useLoad(`usage ${query}`, signal =>
    listUsage({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  const surfaces = useLoad('surfaces of usage', signal => listSurfaces({ limit: PAGE_SIZE }, { signal }))
  const nameOf = (id: string) => surfaces.value?.surfaces.find(surface => surface.id === id)?.name ?? id
  return (
    <section>
      <h2>Usage of the last seven days</h2>
      <Shown loaded={loaded} what="the usage">
        {({ usage, nextCursor }) => (
          <>
            <DataTable
              caption="Usage by day, surface and kind, the latest day first. Days are in UTC."
              columns={columnsOf(nameOf)}
              rows={usage}
              keyOf={({ day, surfaceId, kind }) => `${day} ${surfaceId} ${kind}`}
              empty={<Notice title="Nothing was sent" text="No surface has sent anything in these days." />}
            />
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function columnsOf(nameOf: (surfaceId: string) => string): readonly Column<Usage>[] {
  return [
    {
      head: 'Day and surface',
      cell: ({ day, surfaceId }) => (
        <>
          {day} <span class="quiet">{nameOf(surfaceId)}</span>
        </>
      ),
    },
    { head: 'Kind', cell: ({ kind }) => kind },
    { head: 'Requests', isNumber: true, cell: ({ requests }) => formatCount(requests) },
    { head: 'Records', isNumber: true, cell: ({ records }) => formatCount(records) },
    {
      head: 'Bytes',
      isNumber: true,
      title: ({ bytes }) => formatCount(bytes),
      cell: ({ bytes }) => formatBytes(bytes),
    },
  ]
}
