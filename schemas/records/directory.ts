import { z } from 'zod'

/** What a member of a workspace may be permitted to do (CONTRACT section 2). */
export const PERMISSIONS = [
  'org:workspace_auth:write',
  'org:surfaces:read',
  'org:surfaces:write',
  'org:surfaces:delete',
  'org:findings:read',
  'org:sessions:read',
  'org:releases:read',
] as const
export const permissionSchema = z.enum(PERMISSIONS).meta({ id: 'Permission' })
export type Permission = z.infer<typeof permissionSchema>

const instant = z.iso.datetime()
const workspaceId = z.string().regex(/^ws_[0-9a-z]+$/)
const keyId = z.string().regex(/^key_[0-9a-z]+$/)
/** As we give them; a client may ask for other slugs, which are those of no release. */
const releaseSlug = z
  .string()
  .regex(/^rel_[\w-]+$/)
  .max(128)
const digest = z.string().regex(/^[0-9a-f]{64}$/)

/** The `sub` of an identity provider's tokens, as it gives it. */
export const userIdSchema = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not have control characters')
  .min(1)
  .max(200)

/** Records of the directory. Each carries its version, and is validated whenever it is read. */
export const userSchema = z.object({
  version: z.literal(1),
  id: userIdSchema,
  email: z.string().nullable(),
  name: z.string().nullable(),
  createdAt: instant,
})
export type User = z.infer<typeof userSchema>

export const workspaceSchema = z.object({
  version: z.literal(1),
  id: workspaceId,
  slug: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  createdAt: instant,
})
export type Workspace = z.infer<typeof workspaceSchema>

export const memberSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  userId: userIdSchema,
  permissions: z.array(permissionSchema),
})
export type Member = z.infer<typeof memberSchema>

export const surfaceSchema = z.object({
  version: z.literal(1),
  id: z.string().regex(/^srf_[0-9a-z]+$/),
  workspaceId: z.string(),
  name: z.string(),
  createdAt: instant,
})
export type Surface = z.infer<typeof surfaceSchema>

/** A public or secret key of a surface. `digest` is the SHA-256 of the key, in hex; the key itself is nowhere. */
export const surfaceKeySchema = z.object({
  version: z.literal(1),
  id: keyId,
  kind: z.enum(['public', 'secret']),
  digest,
  prefix: z.string(),
  workspaceId: z.string(),
  surfaceId: z.string(),
  scopes: z.array(z.string()),
  createdAt: instant,
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
})
export type SurfaceKey = z.infer<typeof surfaceKeySchema>

/**
 * A key for automation in a workspace. `digest` is the SHA-256 of the key, in hex; the key itself is nowhere, but whoever
 * has the server's pepper derives it again from `salt`, workspace, user and `idempotencyKey` (CONTRACT 4.10).
 */
export const workspaceKeySchema = z.object({
  version: z.literal(1),
  id: keyId,
  workspaceId: z.string(),
  /** 120 characters, each of which may be two units. */
  name: z.string().min(1).max(240),
  scopes: z.array(permissionSchema),
  digest,
  /** What may be shown of the key: `wk_` and at most three characters more. */
  prefix: z.string().max(6),
  salt: z.string().regex(/^[0-9a-f]{64}$/),
  createdBy: userIdSchema,
  idempotencyKey: z.guid(),
  createdAt: instant,
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
  /** As it was asked for: what the same request is told by. */
  secondsUntilExpiration: z.number().int().min(1).nullable(),
})
export type WorkspaceKey = z.infer<typeof workspaceKeySchema>

/** A version of a surface's code. Its slug derives from workspace, surface and version (`shared/ids/release-slug.ts`). */
export const releaseSchema = z.object({
  version: z.literal(1),
  slug: releaseSlug,
  workspaceId: z.string(),
  surfaceId: z.string(),
  /** As it was registered: what the surface's telemetry carries as `service.version`. */
  name: z.string(),
  commit: z.string().nullable(),
  /** What the build said of itself, as it stood. */
  metadata: z.record(z.string(), z.json()).nullable(),
  createdAt: instant,
})
export type Release = z.infer<typeof releaseSchema>

/** Which manifest of a release holds, and the counters that go with it: both change in one step. */
export const manifestPointerSchema = z.object({
  version: z.literal(1),
  /** The place of its completion in the order in which completions were accepted. */
  sequence: z.number().int().min(1),
  objectKey: z.string(),
  sourceMapCount: z.number().int().min(0),
  sourceFileCount: z.number().int().min(0),
  completedAt: instant,
})
export type ManifestPointer = z.infer<typeof manifestPointerSchema>

/** What the ids of receipts are sealed with (`shared/ids/receipt.ts`): 32 random bytes in hex, one for the installation. */
export const receiptSecretSchema = z.object({ version: z.literal(1), secret: z.string().regex(/^[0-9a-f]{64}$/) })
export type ReceiptSecret = z.infer<typeof receiptSecretSchema>
