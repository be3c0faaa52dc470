import { setTimeout as delay } from 'node:timers/promises'
import type { PenstockOptions } from '../options.ts'
import { BuildFailure } from '../upload/build-failure.ts'
import { counted, describeError, listed } from '../upload/describe.ts'
import type { BuildOutput } from '../upload/find-build-files.ts'
import { uploadBuild } from '../upload/upload-build.ts'
import type { UploadReport } from '../upload-report.ts'
import { toUpload } from './settings.ts'

// Node loads its client of HTTP with the first of its globals that is used, which takes 20 ms. That is done before the upload.
void globalThis.Headers

/**
 * Uploads the maps of a build and prints the outcome to stderr. Throws the outcome as an error if the build is to fail with it.
 * Nothing else is thrown.
 */
export async function uploadOutputs(options: PenstockOptions, outputs: readonly BuildOutput[]): Promise<UploadReport> {
  const report = await upload(options, outputs)
  print(describe(report, options))
  options.onReport?.(report)
  if (report.result !== 'ok' && options.failBuild) {
    throw new Error(`the source maps were not uploaded (${report.result}): ${report.message}`)
  }
  return report
}

async function upload(options: PenstockOptions, outputs: readonly BuildOutput[]): Promise<UploadReport> {
  const deps = {
    fetch,
    now: Date.now,
    random: Math.random,
    delay: (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal }),
    abortSignal: new AbortController().signal,
    progress: { note: print, begin() {}, advance() {}, end() {} },
  }
  try {
    return await uploadBuild(deps, toUpload(options, outputs))
  } catch (error) {
    const isMissing = error instanceof BuildFailure
    return notStarted(isMissing ? error.result : 'pipeline_failed', isMissing ? error.message : describeError(error))
  }
}

function describe(report: UploadReport, { keepMaps, dryRun }: PenstockOptions): string {
  const { result, message, files, fileCount, sentBytes, removedCount, timings } = report
  if (result !== 'ok') {
    return [
      `SOURCE MAPS WERE NOT UPLOADED (${result}): ${message}`,
      ...(keepMaps || dryRun ? [] : ['The maps stay in the output. Do not deploy them if the sources are not public.']),
    ].join('\n')
  }
  if (dryRun) return `would upload ${counted(fileCount, 'source map')}:${listed(files.map(({ path }) => path))}`
  const known = files.filter(({ outcome }) => outcome === 'known').length
  const removed = removedCount > 0 ? `, ${removedCount} removed from the output` : ''
  const { total, discover, createRelease, upload, cleanup } = timings
  return [
    `${counted(fileCount, 'source map')}: ${fileCount - known} sent (${counted(sentBytes, 'byte')}), ${known} already stored${removed}`,
    `${total} ms (finding ${discover}, registering ${createRelease}, uploading ${upload}, cleaning up ${cleanup})`,
  ].join('\n')
}

function notStarted(result: UploadReport['result'], message: string): UploadReport {
  const timings = { preflight: 0, discover: 0, createRelease: 0, upload: 0, cleanup: 0, total: 0 }
  const counts = { sourceFileCount: 0, fileCount: 0, totalBytes: 0, sentBytes: 0, removedCount: 0 }
  return { result, message, ...counts, timings, warnings: [], files: [] }
}

function print(text: string): void {
  process.stderr.write(`${text.replaceAll(/^/gm, '[penstock] ')}\n`)
}
