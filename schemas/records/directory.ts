import { z } from 'zod'

/** Permissions of a member of a workspace (docs/api/credentials.md#credentials). */
export const PERMISSIONS = [
  'org:workspace_auth:write',
  'org:members:read',
  'org:members:write',
  'org:surfaces:read',
  'org:surfaces:write',
  'org:surfaces:delete',
  'org:findings:read',
  'org:findings:write',
  'org:sessions:read',
  'org:releases:read',
  'org:telemetry:read',
  'org:telemetry:admin',
] as const
/** Accepts a permission. */
export const permissionSchema = z.enum(PERMISSIONS).meta({ id: 'Permission' })
/** A permission of a member of a workspace. */
export type Permission = z.infer<typeof permissionSchema>

const instant = z.iso.datetime()
/** The largest quota. Above it, counters in Redis and in JavaScript would no longer be exact. */
export const QUOTA_MAX = 1_000_000_000_000_000
const workspaceId = z.string().regex(/^ws_[0-9a-z]+$/)
const keyId = z.string().regex(/^key_[0-9a-z]+$/)
/** Slug of a release. Clients may send other slugs, which match no release. */
const releaseSlug = z
  .string()
  .regex(/^rel_[\w-]+$/)
  .max(128)
const digest = z.string().regex(/^[0-9a-f]{64}$/)

/** Id of a user: the `sub` of the tokens of an identity provider. */
export const userIdSchema = z
  .string()
  .min(1)
  .max(200)
  .refine(id => !/[\p{Cc}\p{Cs}]/u.test(id), 'must not contain control characters')
  .meta({ pattern: String.raw`^[^\x00-\x1f\x7f-\x9f]*$` })

// Every record has a version, and is validated whenever it is read.

/** Record of a user. */
export const userSchema = z.object({
  version: z.literal(1),
  id: userIdSchema,
  email: z.string().nullable(),
  name: z.string().nullable(),
  createdAt: instant,
})
/** Record of a user. */
export type User = z.infer<typeof userSchema>

/** Longest retention that a workspace may have. */
export const RETENTION_MAX_DAYS = 3_650
const days = z.number().int().min(1).max(RETENTION_MAX_DAYS).optional()

/** How many days each kind of data is kept (docs/api/retention.md#retention). An absent one has the default of the installation. */
const retentionSchema = z.object({
  traces: days,
  logs: days,
  metrics: days,
  findings: days,
  sessions: days,
  replay: days,
  'build-reports': days,
  'dead-letters': days,
  releases: days,
})
/** How many days each kind of data of a workspace is kept. */
export type Retention = z.infer<typeof retentionSchema>
/** Kind of data with a retention of its own. */
export type RetainedKind = keyof Retention
/** All kinds of data with a retention, in the order in which they are shown. */
export const RETAINED_KINDS = Object.keys(retentionSchema.shape) as readonly RetainedKind[]

/** Record of a workspace. */
export const workspaceSchema = z.object({
  version: z.literal(1),
  id: workspaceId,
  slug: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  createdAt: instant,
  /** Absent where everything has the default. */
  retention: retentionSchema.optional(),
})
/** Record of a workspace. */
export type Workspace = z.infer<typeof workspaceSchema>

/** Record of a member of a workspace. */
export const memberSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  userId: userIdSchema,
  permissions: z.array(permissionSchema),
  // The rest is absent for members whom an operator has added.
  name: z.string().optional(),
  email: z.string().optional(),
  invitedAt: instant.optional(),
})
/** Record of a member of a workspace. */
export type Member = z.infer<typeof memberSchema>

/** Record of a surface. */
export const surfaceSchema = z.object({
  version: z.literal(1),
  id: z.string().regex(/^srf_[0-9a-z]+$/),
  workspaceId: z.string(),
  name: z.string(),
  createdAt: instant,
})
/** Record of a surface. */
export type Surface = z.infer<typeof surfaceSchema>

const quota = z.number().int().min(1).max(QUOTA_MAX).optional()

/** Quotas of a key of a surface. One that is absent is not limited (docs/api/credentials.md#quotas). */
const keyQuotasSchema = z.object({ requestsPerSecond: quota, bytesPerSecond: quota, bytesPerDay: quota })
/** Quotas of a key of a surface. */
export type KeyQuotas = z.infer<typeof keyQuotasSchema>

/**
 * Record of a public or secret key of a surface. `digest` is the SHA-256 of the key in hex. The text of a secret key is
 * not stored.
 */
export const surfaceKeySchema = z.object({
  version: z.literal(1),
  id: keyId,
  kind: z.enum(['public', 'secret']),
  digest,
  prefix: z.string(),
  /** At most 120 characters, each of up to two UTF-16 units. Absent: named for its kind. */
  name: z.string().min(1).max(240).optional(),
  /** The text of a public key, which pages show to everyone. */
  publicKey: z.string().regex(/^pk_/).max(64).optional(),
  workspaceId: z.string(),
  surfaceId: z.string(),
  scopes: z.array(z.string()),
  createdAt: instant,
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
  /** The user who created the key, and the API key that the user's automation used, if any. Absent for operators. */
  createdBy: z.object({ userId: userIdSchema, apiKeyId: keyId.nullable() }).optional(),
  quotas: keyQuotasSchema.optional(),
  /** Origins whose pages may use a public key. Absent: any origin (docs/api/credentials.md#allowed-origins). */
  allowedOrigins: z.array(z.string()).optional(),
})
/** Record of a key of a surface. */
export type SurfaceKey = z.infer<typeof surfaceKeySchema>

/** Record of a workspace API key. `digest` is the SHA-256 of the key in hex. The key itself is not stored. */
export const workspaceKeySchema = z.object({
  version: z.literal(1),
  id: keyId,
  workspaceId: z.string(),
  /** At most 120 characters, each of up to two UTF-16 units. */
  name: z.string().min(1).max(240),
  scopes: z.array(permissionSchema),
  digest,
  /** Visible part of the key: `wk_` and at most three further characters. */
  prefix: z.string().max(6),
  createdBy: userIdSchema,
  createdAt: instant,
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
})
/** Record of a workspace API key. */
export type WorkspaceKey = z.infer<typeof workspaceKeySchema>

/** Record of a release. Its slug derives from workspace, surface and version (`shared/ids/release-slug.ts`). */
export const releaseSchema = z.object({
  version: z.literal(1),
  slug: releaseSlug,
  workspaceId: z.string(),
  surfaceId: z.string(),
  /** The registered version: the `service.version` of its telemetry. */
  name: z.string(),
  commit: z.string().nullable(),
  /** Free-form data of the build, unchanged. It was validated when it was received. */
  metadata: z
    .custom<Record<string, z.core.util.JSONType>>(
      value => typeof value === 'object' && value !== null && !Array.isArray(value),
    )
    .nullable(),
  createdAt: instant,
})
/** Record of a release. */
export type Release = z.infer<typeof releaseSchema>

/** Record that names the current manifest of a release, with its counters. Both change atomically. */
export const manifestPointerSchema = z.object({
  version: z.literal(1),
  /** Sequence number of its completion, in the order of acceptance. */
  sequence: z.number().int().min(1),
  objectKey: z.string(),
  sourceMapCount: z.number().int().min(0),
  sourceFileCount: z.number().int().min(0),
  completedAt: instant,
})
/** Record that names the current manifest of a release. */
export type ManifestPointer = z.infer<typeof manifestPointerSchema>

const secretBytes = z.string().regex(/^[0-9a-f]{64}$/)
/**
 * Record of the secret that seals the ids of receipts (`shared/ids/receipt.ts`): 32 random bytes in hex, one per
 * installation. Receipts that earlier secrets have sealed can be read until `earlier` no longer has them.
 */
export const receiptSecretSchema = z.object({
  version: z.literal(1),
  secret: secretBytes,
  /** The newest first. */
  earlier: z.array(z.object({ secret: secretBytes, replacedAt: instant })).optional(),
})
/** Record of the secret that seals the ids of receipts. */
export type ReceiptSecret = z.infer<typeof receiptSecretSchema>
