import { EXAMPLE } from './example-values.ts'

/** What the service answers to the examples, by the operations' ids; times and counts are those of one request each. */

const { findingId, surfaceId, traceId, sessionId, releaseSlug, serviceName, version, deviceId, workspaceId } = EXAMPLE

const FIRST_EVENT_AT = '2026-09-21T14:13:20.000Z'
const LAST_EVENT_AT = '2026-09-21T14:13:20.020Z'
const STARTED_AT = '2026-09-21T14:13:20.000000000Z'
const ENDED_AT = '2026-09-21T14:13:20.042000000Z'
const THROWN_AT = '2026-09-21T14:13:20.041000000Z'
const RECEIVED_AT = '2026-09-21T14:13:21.306Z'
const CREATED_AT = '2026-09-21T09:00:00.000Z'
const COMPLETED_AT = '2026-09-21T09:00:04.812Z'

const finding = {
  id: findingId,
  surfaceId,
  serviceName,
  type: 'EmptyCartError',
  message: 'the cart is empty',
  firstSeenAt: THROWN_AT,
  lastSeenAt: THROWN_AT,
  occurrenceCount: 1,
}

const release = {
  slug: releaseSlug,
  version,
  surfaceId,
  commit: '3f9a2c1',
  createdAt: CREATED_AT,
  sourceMapCount: 1,
  sourceFileCount: 1,
  completedAt: COMPLETED_AT,
}

const identity = {
  identifier: 'user-7',
  source: { type: 'custom', name: 'Our sign-in' },
  email: 'ada@example.com',
  traits: { plan: 'team' },
  attachedAt: RECEIVED_AT,
}

const bytes = { eventCount: 2, storedBytes: 150, decompressedBytes: 194 }
const times = { firstEventAt: FIRST_EVENT_AT, lastEventAt: LAST_EVENT_AT }
const surface = { id: surfaceId, name: 'Shop', createdAt: CREATED_AT }
const sha256 = `sha256:${EXAMPLE.mapSha256}`
const mapObjectKey = `source-maps/${workspaceId}/${EXAMPLE.mapSha256}.map`

export const ANSWERS = {
  listFindings: { findings: [finding], nextCursor: null },
  readFinding: {
    finding: {
      ...finding,
      frames: [
        {
          function: 'checkout',
          file: 'cart.ts',
          line: 1,
          column: 1,
          resolved: true,
          generated: { function: 'checkout', file: 'https://shop.example/assets/app.js', line: 1, column: 1 },
        },
      ],
      occurrences: {
        from: '2026-09-21T12:00:00.000Z',
        to: '2026-09-21T15:00:00.000Z',
        bucketSeconds: 3_600,
        counts: [0, 0, 1],
      },
      lastOccurrences: [
        {
          occurredAt: THROWN_AT,
          receivedAt: RECEIVED_AT,
          traceId,
          spanId: EXAMPLE.spanId,
          sessionId,
          serviceVersion: version,
          message: finding.message,
        },
      ],
      seenIn: {
        surfaceIds: [surfaceId],
        serviceNames: [serviceName],
        serviceVersions: [version],
        approximateTraceCount: 1,
        approximateSessionCount: 1,
      },
    },
  },
  listFindingTraces: {
    traces: [{ id: traceId, traceId, occurrenceCount: 1, lastSeenAt: THROWN_AT }],
    nextCursor: null,
  },
  readFindingTrace: {
    traceId,
    spans: [
      {
        spanId: EXAMPLE.spanId,
        name: 'GET /cart',
        kind: 'SERVER',
        serviceName,
        startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
        endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
        durationMs: 42,
        statusCode: 'ERROR',
        statusMessage: finding.message,
        sessionId,
        httpRoute: '/cart',
        occurrenceCount: 1,
        timestamp: STARTED_AT,
      },
    ],
    rootCount: 1,
    danglingParentCount: 0,
    startedAtUnixNano: `${EXAMPLE.recordedAtMs}000000`,
    endedAtUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
    wallDurationMs: 42,
    truncated: false,
  },

  readSession: {
    session: {
      id: sessionId,
      identity,
      identities: [identity],
      identityCount: 1,
      devices: [{ deviceId, firstHeartbeatAt: RECEIVED_AT, lastHeartbeatAt: RECEIVED_AT, heartbeatCount: 1 }],
      deviceCount: 1,
      firstSeenAt: RECEIVED_AT,
      lastSeenAt: RECEIVED_AT,
      traces: [{ id: traceId, traceId, startedAt: STARTED_AT, endedAt: ENDED_AT, spanCount: 1, errorCount: 1 }],
      traceCount: 1,
      findings: [{ id: findingId, occurrenceCount: 1, lastSeenAt: THROWN_AT }],
      findingCount: 1,
      replay: { chunkCount: 1, windowCount: 1, ...bytes, ...times },
      truncated: false,
    },
  },
  readReplay: {
    chunks: [
      {
        id: 'chk_a60180507058f43a0ba8b452be3e5eb1',
        objectKey: `replays/${workspaceId}/${surfaceId}/${sessionId}/${EXAMPLE.windowId}/0.jsonl.gz`,
        windowId: EXAMPLE.windowId,
        segmentId: '0',
        firstTs: EXAMPLE.recordedAtMs,
        lastTs: EXAMPLE.recordedAtMs + 20,
        ...times,
        hasFullSnapshot: true,
        activityCount: 0,
        ...bytes,
        receivedAt: RECEIVED_AT,
      },
    ],
    nextCursor: null,
    gaps: [],
    missingFullSnapshots: [],
    truncated: false,
  },

  readReceipt: {
    receipt: {
      id: EXAMPLE.receiptId,
      status: 'stored',
      kind: 'sessions',
      surfaceId,
      receivedAt: RECEIVED_AT,
      storedAt: '2026-09-21T14:13:21.577Z',
    },
  },

  listReleases: { releases: [release], nextCursor: null },
  readRelease: {
    release: {
      ...release,
      metadata: null,
      symbolication: { resolvedFrames: 1, totalFrames: 1, share: 1 },
      buildReports: [
        {
          receivedAt: COMPLETED_AT,
          result: 'ok',
          discover: 12,
          upload: 840,
          total: 900,
          fileCount: 3,
          totalBytes: 12_288,
        },
      ],
      manifest: {
        completedAt: COMPLETED_AT,
        files: [
          {
            path: EXAMPLE.mapPath,
            hash: sha256,
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

  listSurfaces: { surfaces: [surface], nextCursor: null },
  createSurface: { surface },
  listSurfaceKeys: {
    keys: [
      {
        id: EXAMPLE.surfaceKeyId,
        kind: 'public',
        prefix: 'pk_jyh',
        scopes: [],
        createdAt: CREATED_AT,
        expiresAt: null,
        revokedAt: null,
      },
    ],
    nextCursor: null,
  },
  createSurfaceKey: {
    key: {
      id: 'key_09898a3feab2e1573580',
      kind: 'secret',
      secret: 'sk_shown-only-here',
      scopes: ['release:write'],
      expiresAt: '2026-09-22T09:00:00.000Z',
    },
  },
  listWorkspaceKeys: {
    apiKeys: [
      {
        id: EXAMPLE.apiKeyId,
        name: 'Terraform',
        prefix: 'wk_4Fq',
        scopes: ['org:surfaces:read', 'org:surfaces:write'],
        createdBy: EXAMPLE.userId,
        createdAt: CREATED_AT,
        expiresAt: null,
        revokedAt: null,
      },
    ],
    nextCursor: null,
  },
  createWorkspaceKey: {
    apiKey: {
      id: EXAMPLE.apiKeyId,
      name: 'Terraform',
      scopes: ['org:surfaces:read', 'org:surfaces:write'],
      createdAt: CREATED_AT,
      expiresAt: null,
      secret: 'wk_shown-only-here',
    },
  },
} as const
