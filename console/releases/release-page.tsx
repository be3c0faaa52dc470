import { type ReleaseDetails, readRelease } from '../api/generated/client.ts'
import { counted, formatBytes, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { addressOf, place } from '../state/router.ts'
import { Fact, Facts } from '../ui/facts.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Time, Title } from '../ui/text.tsx'
import { MapsState } from './maps-state.tsx'

/** Source maps of one page. A release may have a hundred thousand. */
const PAGE_SIZE = 200

/** A release: its source maps, what they have resolved, and the last reports of its builds. */
export function ReleasePage({ id }: { readonly id: string }) {
  const { query } = place.value
  const loaded = useLoad(`${id} ${query}`, signal =>
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
      <table class="list">
        <caption class="hidden">Source maps in the order of the upload</caption>
        <thead>
          <tr>
            <th scope="col">Map and its script</th>
            <th scope="col">Debug id</th>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col">Bytes</th>
          </tr>
        </thead>
        <tbody>
          {manifest.files.map(file => (
            <tr key={file.path}>
              <th scope="row">
                <span class="type">{file.path}</span>
                <span class="message">{file.chunkUrl || 'no address of its script'}</span>
              </th>
              <td data-label="Debug id">{file.debugId ? <code>{file.debugId}</code> : '–'}</td>
              <td data-label="Size" class="number" title={formatCount(file.size)}>
                {formatBytes(file.size)}
              </td>
              <td>
                {file.verified ? (
                  <span class="tag good">verified</span>
                ) : (
                  <span
                    class="tag"
                    title="The form of its hash is unknown, so that its bytes were not compared with it"
                  >
                    not compared
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet">{counted(manifest.files.length, 'source map')} on this page</p>
      <Pages nextCursor={manifest.nextCursor} />
    </>
  )
}

function BuildReports({ release: { buildReports } }: { readonly release: ReleaseDetails }) {
  if (buildReports.length === 0) return <p class="quiet">No build has sent a report.</p>
  return (
    <table class="list">
      <caption class="hidden">Build reports, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Received</th>
          <th scope="col">Result</th>
          <th scope="col" class="number">
            Files
          </th>
          <th scope="col" class="number">
            Size
          </th>
          <th scope="col" class="number">
            Upload
          </th>
          <th scope="col" class="number">
            Total
          </th>
        </tr>
      </thead>
      <tbody>
        {buildReports.map(report => (
          <tr key={report.receivedAt}>
            <th scope="row">
              <Time iso={report.receivedAt} />
            </th>
            <td data-label="Result">{report.result ?? '–'}</td>
            <td data-label="Files" class="number">
              {report.fileCount === undefined ? '–' : formatCount(report.fileCount)}
            </td>
            <td data-label="Size" class="number">
              {report.totalBytes === undefined ? '–' : formatBytes(report.totalBytes)}
            </td>
            <td data-label="Upload" class="number">
              {durationOf(report.upload)}
            </td>
            <td data-label="Total" class="number">
              {durationOf(report.total)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function durationOf(ms: number | undefined): string {
  return ms === undefined ? '–' : `${formatCount(ms)} ms`
}
