import type { PenstockOptions } from './options.ts'
import { uploadOutputs } from './plugin/upload-outputs.ts'
import type { UploadReport } from './upload-report.ts'

export type { PenstockOptions } from './options.ts'
export type { BuildResult, UploadReport } from './upload-report.ts'

/**
 * Uploads the source maps of a directory that a build has written. It prints the outcome to stderr and returns its report. It
 * throws only if the upload fails and `failBuild` is set.
 */
export function uploadDirectory(directory: string, options: PenstockOptions = {}): Promise<UploadReport> {
  return uploadOutputs(options, [{ directory }])
}
