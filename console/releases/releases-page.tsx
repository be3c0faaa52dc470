import { listReleases, type Release } from '../api/generated/client.ts'
import { NoData } from '../onboarding/no-data.tsx'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { Versions } from './versions.tsx'

const PAGE_SIZE = 50

const COLUMNS: readonly Column<Release>[] = [
  {
    head: 'Release',
    cell: ({ slug, version, surfaceId, commit }) => (
      <>
        <a data-row href={addressOf(`releases/${encodeURIComponent(slug)}`)}>
          {version}
        </a>
        <span class="message">
          {surfaceId}
          {commit && `, commit ${commit}`}
        </span>
      </>
    ),
  },
  { head: 'Source maps', isNumber: true, cell: ({ sourceMapCount }) => formatCount(sourceMapCount) },
  { head: 'Sources', isNumber: true, cell: ({ sourceFileCount }) => formatCount(sourceFileCount) },
  { head: 'Maps', isPlain: true, cell: ({ completedAt }) => <MapsState completedAt={completedAt} /> },
  { head: 'Created', cell: ({ createdAt }) => <Time iso={createdAt} /> },
]

/** The list of releases with their source maps, newest first. */
export function ReleasesPage() {
  const { query } = place.value
  const loaded = useLoad(`releases ${query}`, signal =>
    listReleases({ limit: PAGE_SIZE, ...given(query, 'cursor', 'version') }, { signal }),
  )
  return (
    <>
      <Title text="Releases" />
      <Versions />
      <h2>Registered releases</h2>
      <Filters>
        <TextFilter name="version" label="Version" placeholder="1.4.2" maxLength={256} />
      </Filters>
      <Shown loaded={loaded} what="releases">
        {({ releases, nextCursor }) => (
          <>
            <DataTable
              caption="Releases, newest first"
              columns={COLUMNS}
              rows={releases}
              keyOf={({ surfaceId, slug }) => `${surfaceId} ${slug}`}
              empty={
                <NoData kind="releases">
                  <Notice title="No release" text="None has this version, or this is the end of the list." />
                </NoData>
              }
            />
            <p class="quiet">{counted(releases.length, 'release')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

/** Whether the source maps of a release are complete. */
export function MapsState({ completedAt }: { readonly completedAt: string | null }) {
  return completedAt === null ? <span class="tag doubt">not complete</span> : <span class="tag good">complete</span>
}
