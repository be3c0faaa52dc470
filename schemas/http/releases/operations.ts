import { z } from 'zod'
import { MANAGER, READER, SECRET_KEY } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { idempotencyHeader } from '../fields.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { Operation, PermittedOperation } from '../operation.ts'
import { IDEMPOTENCY_CONFLICT, releaseProblems, secretKeyProblems } from '../problem-sets.ts'
import {
  buildReportSchema,
  listReleasesQuerySchema,
  manifestQuerySchema,
  registeredReleaseSchema,
  registerReleaseSchema,
  releaseAnswerSchema,
  releaseSlugSchema,
  releasesPageSchema,
  telemetryResponseSchema,
} from './schemas.ts'

const { surfaceId, releaseSlug, version } = EXAMPLE

const release = {
  slug: releaseSlug,
  version,
  surfaceId,
  commit: '3f9a2c1',
  createdAt: EXAMPLE_TIMES.createdAt,
  sourceMapCount: 1,
  sourceFileCount: 1,
  completedAt: EXAMPLE_TIMES.completedAt,
}

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  listReleases: { releases: [release], nextCursor: null },
  readRelease: {
    release: {
      ...release,
      metadata: null,
      symbolication: { resolvedFrames: 1, totalFrames: 1, share: 1 },
      buildReports: [
        {
          receivedAt: EXAMPLE_TIMES.completedAt,
          result: 'ok',
          discover: 12,
          upload: 840,
          total: 900,
          fileCount: 3,
          totalBytes: 12_288,
        },
      ],
      manifest: {
        completedAt: EXAMPLE_TIMES.completedAt,
        files: [
          {
            path: EXAMPLE.mapPath,
            hash: `sha256:${EXAMPLE.mapSha256}`,
            debugId: '',
            chunkUrl: '~/assets/app.js',
            size: 64,
            verified: true,
          },
        ],
        nextCursor: null,
      },
    },
  },
} as const

/** Path of operations that a build calls for one release. */
export const builtReleasePath = z.object({
  releaseSlug: releaseSlugSchema.meta({
    description: 'The slug of the release, as its registration returned it.',
    example: EXAMPLE.releaseSlug,
  }),
})

const listQuery = z.object({
  ...listReleasesQuerySchema.shape,
  surface: listReleasesQuerySchema.shape.surface.meta({ example: surfaceId }),
  version: listReleasesQuerySchema.shape.version.meta({ example: version }),
})

/** Registers a release (docs/api/releases.md#register-release). */
export const registerRelease: Operation = {
  operationId: 'registerRelease',
  method: 'POST',
  path: '/v3/releases',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Register a release',
  description: 'The same surface and version always have the same slug.',
  credentials: SECRET_KEY,
  parameters: { header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: registerReleaseSchema, example: { version: EXAMPLE.version, commit: '3f9a2c1' } },
    },
  },
  success: {
    status: 200,
    description: 'Registered, now or earlier.',
    contents: {
      'application/json': { schema: registeredReleaseSchema, example: { releaseSlug: EXAMPLE.releaseSlug } },
    },
  },
  problems: [...secretKeyProblems, IDEMPOTENCY_CONFLICT],
}

/** Accepts the report of a build (docs/api/releases.md#build-report). */
export const reportBuild: Operation = {
  operationId: 'reportBuild',
  method: 'POST',
  path: '/v3/releases/:releaseSlug/telemetry',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Report the result of an upload',
  credentials: SECRET_KEY,
  parameters: { path: builtReleasePath },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': {
        schema: buildReportSchema,
        example: { discover: 12, upload: 840, total: 900, fileCount: 3, totalBytes: 12288, result: 'ok' },
      },
    },
  },
  receiptStatuses: [200],
  success: {
    status: 200,
    description: 'On disk.',
    contents: { 'application/json': { schema: telemetryResponseSchema, example: { ok: true } } },
  },
  problems: secretKeyProblems,
}

const slugPath = z.object({
  releaseSlug: releaseSlugSchema.meta({ description: 'The slug of the release.', example: EXAMPLE.releaseSlug }),
})

/** Lists releases (docs/api/releases.md#releases). */
export const listReleases: PermittedOperation = {
  operationId: 'listReleases',
  method: 'GET',
  path: '/v3/releases',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'List the releases of the workspace, last registered first',
  credentials: READER,
  permission: 'org:releases:read',
  parameters: { query: listQuery },
  success: {
    status: 200,
    description: 'A page of releases.',
    contents: { 'application/json': { schema: releasesPageSchema, example: ANSWERS.listReleases } },
  },
  problems: releaseProblems,
}

/** Reads a release (docs/api/releases.md#releases). */
export const readRelease: PermittedOperation = {
  operationId: 'readRelease',
  method: 'GET',
  path: '/v3/releases/:releaseSlug',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'Read a release: counters, builds, manifest, and the share of resolved stack frames',
  description: 'Counters and manifest belong to the same completion. The manifest is paged.',
  credentials: READER,
  permission: 'org:releases:read',
  parameters: { path: slugPath, query: manifestQuerySchema },
  success: {
    status: 200,
    description: 'The release.',
    contents: { 'application/json': { schema: releaseAnswerSchema, example: ANSWERS.readRelease } },
  },
  problems: releaseProblems,
}

/** Deletes a release (docs/api/releases.md#delete-release). */
export const deleteRelease: PermittedOperation = {
  operationId: 'deleteRelease',
  method: 'DELETE',
  path: '/v3/releases/:releaseSlug',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'Delete a release and its manifest',
  description: 'Stack frames of its exceptions are not resolved any more. Registered again, it begins without maps.',
  credentials: MANAGER,
  permission: 'org:surfaces:delete',
  parameters: { path: slugPath },
  success: {
    status: 200,
    description: 'Deleted.',
    contents: { 'application/json': { schema: telemetryResponseSchema, example: { ok: true } } },
  },
  problems: releaseProblems,
}
