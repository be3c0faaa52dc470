import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

const { surfaceId } = EXAMPLE

const usage = { lastUsedAt: EXAMPLE_TIMES.createdAt, requestsToday: 1_204 }
const PUBLIC_KEY = 'pk_jyhOnPages'

const surface = { id: surfaceId, name: 'Shop', createdAt: EXAMPLE_TIMES.createdAt }

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  listSurfaces: { surfaces: [surface], nextCursor: null },
  createSurface: { surface },
  listSurfaceKeys: {
    keys: [
      {
        id: EXAMPLE.surfaceKeyId,
        kind: 'public',
        name: 'Public key',
        publicKey: PUBLIC_KEY,
        prefix: 'pk_jyh',
        scopes: [],
        createdAt: EXAMPLE_TIMES.createdAt,
        expiresAt: null,
        revokedAt: null,
        createdBy: null,
        usage,
      },
    ],
    nextCursor: null,
  },
  updateSurfaceKey: {
    key: {
      id: EXAMPLE.surfaceKeyId,
      kind: 'public',
      name: 'Public key',
      publicKey: PUBLIC_KEY,
      prefix: 'pk_jyh',
      scopes: [],
      createdAt: EXAMPLE_TIMES.createdAt,
      expiresAt: null,
      revokedAt: null,
      createdBy: null,
      usage,
      quotas: { requestsPerSecond: 200, bytesPerDay: 10_000_000_000 },
      allowedOrigins: ['https://shop.example', 'https://*.shop.example'],
    },
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
        createdBy: { userId: EXAMPLE.userId, apiKeyId: null },
        createdAt: EXAMPLE_TIMES.createdAt,
        expiresAt: null,
        revokedAt: null,
        usage,
      },
    ],
    nextCursor: null,
  },
  createWorkspaceKey: {
    apiKey: {
      id: EXAMPLE.apiKeyId,
      name: 'Terraform',
      scopes: ['org:surfaces:read', 'org:surfaces:write'],
      createdAt: EXAMPLE_TIMES.createdAt,
      expiresAt: null,
      secret: 'wk_shown-only-here',
    },
  },
} as const
