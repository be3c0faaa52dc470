import type { ShownErasure } from '../../schemas/http/erasures.ts'
import type { Erasure } from '../../schemas/records/erasure.ts'
import type { Resource } from '../http/resource.ts'

/** One erasure of a workspace. */
export const ERASURE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such erasure' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'erasures are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Presents an erasure without its subject (docs/api/retention.md#erasures). */
export function presentErasure(erasure: Erasure): ShownErasure {
  const { id, kind, subjectHash, state, failure, createdAt, createdBy, completedAt } = erasure
  const { sessions, rows, objects, objectBytes } = erasure
  const receipt = { sessions, rows, objects, objectBytes }
  return { id, kind, subjectHash, state, failure, createdAt, createdBy, completedAt, ...receipt }
}
