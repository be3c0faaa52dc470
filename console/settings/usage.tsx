import { listSurfaces, listUsage } from '../api/generated/client.ts'
import { formatBytes, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { place } from '../state/router.ts'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'

const PAGE_SIZE = 100

/** Requests, records and bytes that surfaces have sent, by day. */
export function UsagePerDay() {
  const { query } = place.value
  const loaded = useLoad(`usage ${query}`, signal =>
    listUsage({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  const surfaces = useLoad('surfaces', signal => listSurfaces({ limit: PAGE_SIZE }, { signal }))
  const nameOf = (id: string) => surfaces.value?.surfaces.find(surface => surface.id === id)?.name ?? id
  return (
    <section>
      <h2>Usage of the last seven days</h2>
      <Shown loaded={loaded} what="the usage">
        {({ usage, nextCursor }) => (
          <>
            {usage.length === 0 ? (
              <Notice title="Nothing was sent" text="No surface has sent anything in these days." />
            ) : (
              <table class="list">
                <caption class="hidden">Usage by day, surface and kind, the latest day first. Days are in UTC.</caption>
                <thead>
                  <tr>
                    <th scope="col">Day and surface</th>
                    <th scope="col">Kind</th>
                    <th scope="col" class="number">
                      Requests
                    </th>
                    <th scope="col" class="number">
                      Records
                    </th>
                    <th scope="col" class="number">
                      Bytes
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {usage.map(({ day, surfaceId, kind, requests, records, bytes }) => (
                    <tr key={`${day} ${surfaceId} ${kind}`}>
                      <th scope="row">
                        {day} <span class="quiet">{nameOf(surfaceId)}</span>
                      </th>
                      <td data-label="Kind">{kind}</td>
                      <td data-label="Requests" class="number">
                        {formatCount(requests)}
                      </td>
                      <td data-label="Records" class="number">
                        {formatCount(records)}
                      </td>
                      <td data-label="Bytes" class="number" title={formatCount(bytes)}>
                        {formatBytes(bytes)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}
