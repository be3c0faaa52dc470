import { EXAMPLE } from '../example-values.ts'

const { surfaceId, releaseSlug, workspaceId } = EXAMPLE

/** A source map. */
export const EXAMPLE_MAP = { version: 3, sources: ['cart.ts'], names: [], mappings: 'AAAA' } as const
/** EXAMPLE_MAP as it is uploaded. */
export const EXAMPLE_MAP_TEXT = JSON.stringify(EXAMPLE_MAP)

const mapObjectKey = `source-maps/${workspaceId}/${EXAMPLE.mapSha256}.map`

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
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
