import { z } from 'zod'
import { releaseSlugSchema } from './release-slug.ts'

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
export const permissionSchema = z.enum(PERMISSIONS)
export type Permission = z.infer<typeof permissionSchema>

const instant = z.iso.datetime()

/** Records of the control store. Each carries its version, and is validated whenever it is read. */
export const workspaceSchema = z.object({
  version: z.literal(1),
  id: z.string().regex(/^ws_[0-9a-z]+$/),
  slug: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  createdAt: instant,
})
export type Workspace = z.infer<typeof workspaceSchema>

export const memberSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  userId: z.string(),
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
  id: z.string().regex(/^key_[0-9a-z]+$/),
  kind: z.enum(['public', 'secret']),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  prefix: z.string(),
  workspaceId: z.string(),
  surfaceId: z.string(),
  scopes: z.array(z.string()),
  createdAt: instant,
  expiresAt: instant.nullable(),
  revokedAt: instant.nullable(),
})
export type SurfaceKey = z.infer<typeof surfaceKeySchema>

/** A version of a surface's code. Its slug derives from workspace, surface and version (`shared/release-slug.ts`). */
export const releaseSchema = z.object({
  version: z.literal(1),
  slug: releaseSlugSchema,
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
