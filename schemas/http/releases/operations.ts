import { z } from 'zod'
import { READER } from '../credentials.ts'
import { ANSWERS } from '../example-answers.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { releasesProblems } from '../problem-sets.ts'
import { manifestQuerySchema, releaseAnswerSchema, releaseSlugSchema, releasesPageSchema } from './schemas.ts'

/** What is read of releases; what a build writes is in `builds.ts`. */

const slugPath = z.object({
  releaseSlug: releaseSlugSchema.meta({ description: 'The release.', example: EXAMPLE.releaseSlug }),
})

export const listReleases: PermittedOperation = {
  operationId: 'listReleases',
  method: 'GET',
  path: '/v3/releases',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'The releases of the workspace, the last registered first',
  credentials: READER,
  permission: 'org:releases:read',
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of releases.',
    contents: { 'application/json': { schema: releasesPageSchema, example: ANSWERS.listReleases } },
  },
  problems: releasesProblems,
}

export const readRelease: PermittedOperation = {
  operationId: 'readRelease',
  method: 'GET',
  path: '/v3/releases/:releaseSlug',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'One release: its counters, builds and manifest, and how much of its stacks could be resolved',
  description: 'Counters and manifest are of the same completion. The manifest comes page by page.',
  credentials: READER,
  permission: 'org:releases:read',
  parameters: { path: slugPath, query: manifestQuerySchema },
  success: {
    status: 200,
    description: 'The release.',
    contents: { 'application/json': { schema: releaseAnswerSchema, example: ANSWERS.readRelease } },
  },
  problems: releasesProblems,
}
