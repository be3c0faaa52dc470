import type { Problem } from '../../schemas/http/problems.ts'
import type { Resource } from '../http/resource.ts'

const unavailable: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'workspaces and keys are unavailable: retry after the delay',
  retryAfterSeconds: 5,
}

/** A workspace, with its surfaces and API keys as lists. */
export const WORKSPACE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable,
}

/** One surface of a workspace. */
export const SURFACE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such surface' },
  unavailable,
}

/** One key of a surface. */
export const SURFACE_KEY: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'the surface has no such key' },
  unavailable,
}

/** One API key of a workspace. */
export const API_KEY: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such API key' },
  unavailable,
}
