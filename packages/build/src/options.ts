import type { UploadReport } from './upload-report.ts'

/** Options of the plugins and of `uploadDirectory`. README.md explains each. */
export interface PenstockOptions {
  /** URL of the service. Default: `PENSTOCK_URL`. */
  readonly url?: string | undefined
  /** Secret key of the surface, with the scope `release:write`. Default: `PENSTOCK_SECRET_KEY`. */
  readonly key?: string | undefined
  /** The `service.version` of the telemetry. Default: `PENSTOCK_VERSION`, else `GITHUB_SHA`. */
  readonly version?: string | undefined
  /** Start of the URLs of the bundles. `~/` matches any host. Default: `~/`. */
  readonly urlPrefix?: string | undefined
  /** The commit that is built. Default: `GITHUB_SHA`. */
  readonly commit?: string | undefined
  /** https URL of the repository. Default: that of the GitHub Action. */
  readonly repository?: string | undefined
  /** Keeps the maps in the output after their upload. Default: false. */
  readonly keepMaps?: boolean | undefined
  /** Writes debug ids into bundles and maps. Default: true. */
  readonly inject?: boolean | undefined
  /** Number of passes of this process that build one release. They are uploaded together, after the last. Default: 1. */
  readonly passes?: number | undefined
  /** Leaves the upload to `penstock-build upload`, for passes in several processes. Default: false. */
  readonly deferUpload?: boolean | undefined
  /** Does nothing at all. Default: false. */
  readonly disabled?: boolean | undefined
  /** Shows the outcome; writes nothing and sends nothing. Default: false. */
  readonly dryRun?: boolean | undefined
  /** Fails the build if the upload fails. Default: false. */
  readonly failBuild?: boolean | undefined
  /** Only warns about a bundle that names a missing map. Default: false. */
  readonly allowUnmapped?: boolean | undefined
  /** Time for which a request is repeated. Default: 60,000 ms. */
  readonly retryTimeoutMs?: number | undefined
  /** Receives the report of each upload. */
  readonly onReport?: ((report: UploadReport) => void) | undefined
}
