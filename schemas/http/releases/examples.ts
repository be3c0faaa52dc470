import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

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
export const ANSWERS = {
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
