import { z } from 'zod'
import { SECRET_KEY } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { COMPLETION_BYTES, SMALL_BODY_BYTES, SOURCE_MAP_MAX_BYTES, SOURCE_MAP_PART_BYTES } from '../limits.ts'
import type { DocumentedProblem, Operation } from '../operation.ts'
import { secretKeyProblems } from '../problem-sets.ts'
import { builtReleasePath } from '../releases/operations.ts'
import {
  completedSourceMapsSchema,
  completeSourceMapsSchema,
  signedSourceMapsSchema,
  signSourceMapsSchema,
  sourceMapPartQuerySchema,
  sourceMapQuerySchema,
  uploadedSourceMapSchema,
} from './schemas.ts'

const { surfaceId, releaseSlug, workspaceId } = EXAMPLE

/** A source map. */
const EXAMPLE_MAP = { version: 3, sources: ['cart.ts'], names: [], mappings: 'AAAA' } as const
/** EXAMPLE_MAP as it is uploaded. */
export const EXAMPLE_MAP_TEXT = JSON.stringify(EXAMPLE_MAP)

const mapObjectKey = `source-maps/${workspaceId}/${EXAMPLE.mapSha256}.map`

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  signSourceMaps: {
    files: [
      {
        path: 'assets/vendor.js.map',
        objectKey: `uploads/${workspaceId}/${surfaceId}/${releaseSlug}/assets%2Fvendor.js.map/signed-${EXAMPLE.vendorMapSha256}-4096`,
        uploadUrl: 'https://storage.example/penstock/uploads/vendor.js.map?X-Amz-Signature=f00d',
        expiresAt: '2026-09-21T10:00:00.000Z',
      },
      { path: EXAMPLE.mapPath, objectKey: mapObjectKey, alreadyUploaded: true },
    ],
  },
  uploadSourceMapPart: {
    objectKey: `uploads/${workspaceId}/${surfaceId}/${releaseSlug}/assets%2Fapp.js.map/part-0`,
  },
  uploadSourceMap: { objectKey: mapObjectKey },
} as const

const part = sourceMapPartQuerySchema.shape.part.meta({ example: 0 })

const path = sourceMapQuerySchema.shape.path.meta({ example: EXAMPLE.mapPath })

const sentHash = `sha256:${EXAMPLE.mapSha256}`

/** Statuses that depend on the verdict of a worker, 503 if it is still missing. These responses carry a receipt. */
const VERDICT_STATUSES = [200, 400, 404, 413, 503]

const releaseNotFound: DocumentedProblem = { code: 'RELEASE_NOT_FOUND' }

/** Declares source maps and signs their upload addresses (docs/api/releases.md#sign). */
export const signSourceMaps: Operation = {
  operationId: 'signSourceMaps',
  method: 'POST',
  path: '/v3/releases/:releaseSlug/source-maps/sign',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Declare source maps and get their upload addresses',
  description:
    'Each address accepts one PUT of exactly the declared size, for an hour. A map whose bytes the workspace already has need not be sent.',
  credentials: SECRET_KEY,
  parameters: { path: builtReleasePath },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    overLimitAdvice: 'declare fewer files at a time',
    contents: {
      'application/json': {
        schema: signSourceMapsSchema,
        example: {
          files: [
            { path: 'assets/vendor.js.map', size: 4_096, hash: EXAMPLE.vendorMapSha256 },
            { path: EXAMPLE.mapPath, size: EXAMPLE_MAP_TEXT.length, hash: EXAMPLE.mapSha256 },
          ],
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'The files, in the declared order.',
    contents: { 'application/json': { schema: signedSourceMapsSchema, example: ANSWERS.signSourceMaps } },
  },
  problems: [...secretKeyProblems, releaseNotFound, { code: 'RELEASE_SIGN_FILE_TOO_LARGE' }],
}

/** Accepts a part of a source map (docs/api/releases.md#source-map-part). */
export const uploadSourceMapPart: Operation = {
  operationId: 'uploadSourceMapPart',
  method: 'PUT',
  path: '/v3/releases/:releaseSlug/source-maps',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Upload a part of a source map',
  description: 'For builds that cannot reach the object store. Parts may be sent in any order, and repeated.',
  credentials: SECRET_KEY,
  parameters: { path: builtReleasePath, query: sourceMapPartQuerySchema.extend({ part, path }) },
  body: {
    limitBytes: SOURCE_MAP_PART_BYTES,
    overLimitCode: 'RELEASE_SIGN_FILE_TOO_LARGE',
    overLimitAdvice: 'send smaller parts',
    contents: { 'application/octet-stream': { example: EXAMPLE_MAP_TEXT } },
  },
  receiptStatuses: [200],
  success: {
    status: 200,
    description: 'On disk.',
    contents: { 'application/json': { schema: uploadedSourceMapSchema, example: ANSWERS.uploadSourceMapPart } },
  },
  problems: [...secretKeyProblems, { code: 'RELEASE_UPLOAD_CONFLICT' }],
}

/** Accepts a whole source map (docs/api/releases.md#source-map-single). */
export const uploadSourceMap: Operation = {
  operationId: 'uploadSourceMap',
  method: 'PUT',
  path: '/v3/releases/:releaseSlug/source-maps/upload',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Upload a source map in one request',
  credentials: SECRET_KEY,
  parameters: { path: builtReleasePath, query: z.object({ path }) },
  body: {
    limitBytes: SOURCE_MAP_MAX_BYTES,
    overLimitCode: 'RELEASE_SIGN_FILE_TOO_LARGE',
    contents: {
      'application/json': {
        schema: z
          .looseObject({ version: z.literal(3) })
          .meta({ id: 'SourceMap', description: 'A source map of ECMA-426: with `mappings`, or `sections`.' }),
        example: EXAMPLE_MAP,
      },
    },
  },
  receiptStatuses: VERDICT_STATUSES,
  success: {
    status: 200,
    description: 'Stored.',
    contents: { 'application/json': { schema: uploadedSourceMapSchema, example: ANSWERS.uploadSourceMap } },
  },
  problems: secretKeyProblems,
}

/** Completes a release (docs/api/releases.md#source-map-complete). */
export const completeSourceMaps: Operation = {
  operationId: 'completeSourceMaps',
  method: 'POST',
  path: '/v3/releases/:releaseSlug/source-maps/complete',
  service: 'frontier-buildtime',
  tag: 'releases',
  summary: 'Complete a release with the uploaded source maps',
  description: 'Verifies every map, then replaces the whole manifest. Safe to repeat.',
  credentials: SECRET_KEY,
  parameters: { path: builtReleasePath },
  body: {
    limitBytes: COMPLETION_BYTES,
    contents: {
      'application/json': {
        schema: completeSourceMapsSchema,
        example: {
          files: [{ path: EXAMPLE.mapPath, hash: sentHash, debugId: '', chunkUrl: '~/assets/app.js' }],
          sourceFileCount: 1,
        },
      },
    },
  },
  receiptStatuses: VERDICT_STATUSES,
  success: {
    status: 200,
    description: 'The manifest is current.',
    contents: { 'application/json': { schema: completedSourceMapsSchema, example: { ok: true, fileCount: 1 } } },
  },
  problems: [...secretKeyProblems, releaseNotFound],
}
