import type { KeyKind } from '../../../schemas/records/key-form.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { signToken } from '../services/api.ts'
import type { WorkloadIssuer } from '../services/workload-issuer.ts'
import { aSurfaceKey, aWorkspaceKey } from './directory-records.ts'
import type { CredentialKind } from './isolation-matrix.ts'
import type { Tenant } from './tenant.ts'

/** Credential that must be refused. */
export interface BadCredential {
  readonly kind: CredentialKind
  /** The reason why the credential is not accepted. */
  readonly what: string
  readonly value: string
}

const KINDS: Readonly<Record<KeyKind, CredentialKind>> = {
  public: 'publicKey',
  secret: 'secretKey',
  workspace: 'workspaceKey',
}

/** Makes credentials of every kind for the workspace and surface of a tenant that are refused only because of their state. */
export async function makeBadCredentials(
  directory: Directory,
  tenant: Tenant,
  workloads: WorkloadIssuer,
): Promise<BadCredential[]> {
  const past = new Date(Date.now() - 1_000).toISOString()
  const ended: BadCredential[] = []
  for (const [what, state] of [
    ['revoked', { revokedAt: past }],
    ['expired', { expiresAt: past }],
  ] as const) {
    for (const kind of Object.keys(KINDS) as KeyKind[]) {
      ended.push({ kind: KINDS[kind], what, value: await storeKey(directory, tenant, kind, state) })
    }
  }
  const broken = Object.entries(KINDS).flatMap(([kind, name]) => [
    { kind: name, what: 'unknown', value: generateKey(kind as KeyKind) },
    { kind: name, what: 'malformed', value: `${tenant.credentials[name].slice(0, -1)}~` },
  ])
  const tokens = (['sessionToken', 'workload'] as const).flatMap(kind => [
    { kind, what: 'malformed', value: 'ey.ey.ey' },
    { kind, what: 'with the signature of another', value: tamper(tenant.credentials[kind]) },
  ])
  const claims = { org: tenant.things.slug, exp: 1_000_000_000 }
  return [
    ...ended,
    ...broken,
    ...tokens,
    { kind: 'sessionToken', what: 'expired', value: await signToken(claims) },
    { kind: 'workload', what: 'expired', value: await workloads.sign(claims) },
  ]
}

async function storeKey(
  directory: Directory,
  { workspaceId, things: { surfaceId } }: Tenant,
  kind: KeyKind,
  state: { revokedAt?: string; expiresAt?: string },
): Promise<string> {
  const value = generateKey(kind)
  const record = { workspaceId, digest: digestOf(value), ...state }
  if (kind === 'workspace') {
    await directory.createWorkspaceKey(aWorkspaceKey({ ...record, createdBy: `user_${workspaceId}` }))
  } else {
    const scopes = kind === 'secret' ? ['release:write'] : []
    await directory.putSurfaceKey(aSurfaceKey({ ...record, surfaceId, kind, scopes }))
  }
  return value
}

function tamper(token: string): string {
  return token.slice(0, -8) + [...token.slice(-8)].reverse().join('')
}
