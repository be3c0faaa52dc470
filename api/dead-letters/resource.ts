import type { Resource } from '../http/resource.ts'

/** Dead letters. */
export const DEAD_LETTERS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such dead letter, or it is no longer retained' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'dead letters are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
