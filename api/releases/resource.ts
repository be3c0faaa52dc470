import type { Resource } from '../http/resource.ts'

/** Releases and their manifests. */
export const RELEASES: Resource = {
  notFound: { code: 'RELEASE_NOT_FOUND', message: 'there is no such release' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'releases are unavailable: retry after the delay',
    service: 'frontier-buildtime',
    retryAfterSeconds: 5,
  },
}
