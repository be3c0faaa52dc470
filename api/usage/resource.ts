import type { Resource } from '../http/resource.ts'

/** The usage of a workspace. */
export const USAGE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the usage is unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
