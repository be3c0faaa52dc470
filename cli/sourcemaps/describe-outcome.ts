import { listed } from './build-stop.ts'
import type { Build, BuildOutcome } from './upload-build.ts'

/** The outcome in words, for stdout; why it failed is told on stderr. */
export function describeOutcome(outcome: BuildOutcome, build: Pick<Build, 'version' | 'dryRun' | 'baseUrl'>): string {
  const { result, files, fileCount, totalBytes, releaseSlug, timings } = outcome
  const release = `release ${JSON.stringify(build.version)}${releaseSlug === undefined ? '' : ` (${releaseSlug})`}`
  const injected = [...new Set(files.flatMap(file => file.injected))]
  const maps = `${fileCount} source maps, ${totalBytes} bytes`
  if (build.dryRun) {
    const injection = injected.length > 0 ? `\nwould give a debug id to${listed(injected)}` : ''
    const upload = listed(files.map(({ path, chunkUrl }) => (chunkUrl === '' ? path : `${path} for ${chunkUrl}`)))
    return result === 'ok' ? `would upload ${maps}, as ${release}:${upload}${injection}` : `${release}: ${result}`
  }
  if (result !== 'ok') return `${release}: ${result}`
  const known = files.filter(file => file.outcome === 'known').length
  return [
    `${release}: ${maps}`,
    `  ${fileCount - known} uploaded, ${known} known to the service`,
    `  ${injected.length} files given a debug id`,
    `  ${timings.total} ms (finding ${timings.discover}, registering ${timings.createRelease}, uploading ${timings.upload})`,
  ].join('\n')
}
