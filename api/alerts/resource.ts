import type { Resource } from '../http/resource.ts'

/** Receivers of alerts, and the rules that call them. */
export const ALERTS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the receivers of alerts are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
