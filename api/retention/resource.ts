import type { Resource } from '../http/resource.ts'

/** The retention of a workspace. */
export const RETENTION: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the retention of workspaces is unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
