import { type ManifestFile, type ReleaseDetails, readRelease, type StoredBuildReport } from '../api/generated/client.ts'
import { counted, formatBytes, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Fact, Facts, Time, Title } from '../ui/text.tsx'
import { MapsState } from './releases-page.tsx'

/** Source maps of one page. A release may have a hundred thousand. */
const PAGE_SIZE = 200

/** A release: its source maps, what they have resolved, and the last reports of its builds. */
export function ReleasePage({ id }: { readonly id: string }) {
  const { query } = place.value
  const loaded = useLoad(`release ${id} ${query}`, signal =>
    readRelease({ releaseSlug: id, limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  return (
    <>
      <Title text={loaded.value ? `Release ${loaded.value.release.version}` : 'Release'} />
      <p class="quiet trace-id">
        <a href={addressOf('releases')}>Releases</a> <code>{id}</code> <Copy text={id} what="slug" />
      </p>
      <Shown loaded={loaded} what="the release">
        {({ release }) => (
          <>
            <ReleaseFacts release={release} />
            <section>
              <h2>Source maps</h2>
              <SourceMaps release={release} />
            </section>
            <section>
              <h2>Build reports</h2>
              <BuildReports release={release} />
            </section>
          </>
        )}
      </Shown>
    </>
  )
}

function ReleaseFacts({ release }: { readonly release: ReleaseDetails }) {
  const { symbolication } = release
  return (
    <Facts>
      <Fact name="Maps">
        <MapsState completedAt={release.completedAt} />
      </Fact>
      <Fact name="Created">
        <Time iso={release.createdAt} />
      </Fact>
      {release.completedAt !== null && (
        <Fact name="Completed">
          <Time iso={release.completedAt} />
        </Fact>
      )}
      <Fact name="Surface">{release.surfaceId}</Fact>
      <Fact name="Commit">{release.commit ?? '–'}</Fact>
      <Fact name="Source maps">{formatCount(release.sourceMapCount)}</Fact>
      <Fact name="Sources">{formatCount(release.sourceFileCount)}</Fact>
      <Fact name="Resolved frames">{resolvedShare(symbolication)}</Fact>
    </Facts>
  )
}

/** Returns how many stack frames the maps have resolved. */
function resolvedShare({ resolvedFrames, totalFrames }: ReleaseDetails['symbolication']): string {
  if (totalFrames === 0) return 'no exception of it has a stack'
  return `${Math.floor((100 * resolvedFrames) / totalFrames)} %, ${formatCount(resolvedFrames)} of ${counted(totalFrames, 'frame')}`
}

const MAP_COLUMNS: readonly Column<ManifestFile>[] = [
  {
    head: 'Map and its script',
    cell: ({ path, chunkUrl }) => (
      <>
        <span class="type">{path}</span>
        <span class="message">{chunkUrl || 'no address of its script'}</span>
      </>
    ),
  },
  { head: 'Debug id', cell: ({ debugId }) => (debugId ? <code>{debugId}</code> : '–') },
  {
    head: 'Size',
    isNumber: true,
    title: ({ size }) => formatCount(size),
    cell: ({ size }) => formatBytes(size),
  },
  {
    head: 'Bytes',
    isPlain: true,
    cell: ({ verified }) =>
      verified ? (
        <span class="tag good">verified</span>
      ) : (
        <span class="tag" title="The form of its hash is unknown, so that its bytes were not compared with it">
          not compared
        </span>
      ),
  },
]

function SourceMaps({ release: { manifest } }: { readonly release: ReleaseDetails }) {
  if (manifest === null) {
    return (
      <Notice
        title="No source maps yet"
        text="Stacks are shown as they were sent until the upload is completed: penstock sourcemaps upload."
      />
    )
  }
  if (manifest.files.length === 0) {
    return <Notice title="No source maps" text="The last upload was completed without any." />
  }
  return (
    <>
      <DataTable
        caption="Source maps in the order of the upload"
        columns={MAP_COLUMNS}
        rows={manifest.files}
        keyOf={({ path }) => path}
      />
      <p class="quiet">{counted(manifest.files.length, 'source map')} on this page</p>
      <Pages nextCursor={manifest.nextCursor} />
    </>
  )
}

const REPORT_COLUMNS: readonly Column<StoredBuildReport>[] = [
  { head: 'Received', cell: ({ receivedAt }) => <Time iso={receivedAt} /> },
  { head: 'Result', cell: ({ result }) => result ?? '–' },
  { head: 'Files', isNumber: true, cell: ({ fileCount }) => (fileCount === undefined ? '–' : formatCount(fileCount)) },
  {
    head: 'Size',
    isNumber: true,
    cell: ({ totalBytes }) => (totalBytes === undefined ? '–' : formatBytes(totalBytes)),
  },
  { head: 'Upload', isNumber: true, cell: ({ upload }) => durationOf(upload) },
  { head: 'Total', isNumber: true, cell: ({ total }) => durationOf(total) },
]

function BuildReports({ release: { buildReports } }: { readonly release: ReleaseDetails }) {
  return (
    <DataTable
      caption="Build reports, newest first"
      columns={REPORT_COLUMNS}
      rows={buildReports}
      keyOf={({ receivedAt }) => receivedAt}
      empty={<p class="quiet">No build has sent a report.</p>}
    />
  )
}

function durationOf(ms: number | undefined): string {
  return ms === undefined ? '–' : `${formatCount(ms)} ms`
}
