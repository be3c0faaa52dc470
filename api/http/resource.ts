import type { Problem } from '../../schemas/http/problems.ts'
import type { Refusal } from './outcome.ts'

/** The problems of one kind of resource. */
export interface Resource {
  /** Returned when the resource does not exist or belongs to another workspace. The two must look the same. */
  readonly notFound: Problem
  /** Returned when a store that the operation needs is unavailable. */
  readonly unavailable: Problem
}

/** Returns the refusal of a request for a resource that does not exist, as far as the caller may know. */
export function notFound({ notFound: problem }: Resource): Refusal {
  return { ok: false, problem }
}

/** Findings and their traces. */
export const FINDINGS: Resource = {
  notFound: {
    code: 'FINDING_NOT_FOUND',
    message: 'there is no such finding or trace, or it is no longer retained',
  },
  unavailable: {
    code: 'FINDING_CONTEXT_QUERY_FAILED',
    message: 'findings are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Sessions and their replays. */
export const SESSIONS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such session, or it is no longer retained' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'sessions are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Whole traces and their spans. */
export const TRACES: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such trace or span, or it is no longer retained' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'traces are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
