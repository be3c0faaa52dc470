import { listReleases } from '../api/generated/client.ts'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { addressOf, place } from '../state/router.ts'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { MapsState } from './maps-state.tsx'

const PAGE_SIZE = 50

/** The list of releases with their source maps, newest first. */
export function ReleasesPage() {
  const { query } = place.value
  const loaded = useLoad(query.toString(), signal =>
    listReleases({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  return (
    <>
      <Title text="Releases" />
      <Shown loaded={loaded} what="releases">
        {({ releases, nextCursor }) => (
          <>
            {releases.length === 0 ? (
              <Notice
                title="No releases yet"
                text="A release appears here when a build registers it or uploads its source maps: penstock sourcemaps upload."
              />
            ) : (
              <table class="list">
                <caption class="hidden">Releases, newest first</caption>
                <thead>
                  <tr>
                    <th scope="col">Release</th>
                    <th scope="col" class="number">
                      Source maps
                    </th>
                    <th scope="col" class="number">
                      Sources
                    </th>
                    <th scope="col">Maps</th>
                    <th scope="col">Created</th>
                  </tr>
                </thead>
                <tbody>
                  {releases.map(release => (
                    <tr key={`${release.surfaceId} ${release.slug}`}>
                      <th scope="row">
                        <a data-row href={addressOf(`releases/${encodeURIComponent(release.slug)}`)}>
                          {release.version}
                        </a>
                        <span class="message">
                          {release.surfaceId}
                          {release.commit && `, commit ${release.commit}`}
                        </span>
                      </th>
                      <td data-label="Source maps" class="number">
                        {formatCount(release.sourceMapCount)}
                      </td>
                      <td data-label="Sources" class="number">
                        {formatCount(release.sourceFileCount)}
                      </td>
                      <td>
                        <MapsState completedAt={release.completedAt} />
                      </td>
                      <td data-label="Created">
                        <Time iso={release.createdAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <p class="quiet">{counted(releases.length, 'release')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}
