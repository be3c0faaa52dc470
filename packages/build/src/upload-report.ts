/** How the upload of a build ended (README.md explains each). The service lists it with the release. */
export type BuildResult =
  | 'ok'
  | 'api_key_wrong_prefix'
  | 'api_key_unreadable'
  | 'api_key_rejected'
  | 'api_key_scope_mismatch'
  | 'pipeline_failed'
  | 'no_source_maps'
  | 'client_maps_unmapped'

/** How a map was uploaded: to the object store, in parts through the service, or not at all because it is `known`. */
export type UploadOutcome = 'signed' | 'parts' | 'known'

/** A source map of an upload. */
export interface UploadedFile {
  /** Path in the directory that contains all outputs of the build. */
  readonly path: string
  readonly bundles: readonly string[]
  /** `ready`: the map was prepared but not uploaded. */
  readonly outcome: UploadOutcome | 'ready'
  readonly size: number
  readonly sha256: string
  readonly debugId: string
  /** Address of its bundle. */
  readonly chunkUrl: string
  /** Files into which the debug id was written. In a dry run, the files into which it would be written. */
  readonly injected: readonly string[]
}

/** A phase of an upload. */
export type UploadPhase = 'preflight' | 'discover' | 'createRelease' | 'upload' | 'cleanup'

/** Duration of each phase and of the whole upload, in whole milliseconds. */
export type UploadTimings = Readonly<Record<UploadPhase | 'total', number>>

/** The report of an upload. */
export interface UploadReport {
  readonly result: BuildResult
  /** The reason for a result other than `ok`. */
  readonly message?: string
  /** The release, once the service has registered it. */
  readonly releaseSlug?: string
  /** Number of bundles. */
  readonly sourceFileCount: number
  /** Number of maps. */
  readonly fileCount: number
  /** Size of the maps. */
  readonly totalBytes: number
  /** Size of the maps that were sent. Maps that the service had were not. */
  readonly sentBytes: number
  /** Number of map files that were removed from the output. */
  readonly removedCount: number
  readonly timings: UploadTimings
  /** Problems that did not prevent the upload. */
  readonly warnings: readonly string[]
  readonly files: readonly UploadedFile[]
}
