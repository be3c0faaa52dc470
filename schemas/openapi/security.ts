import type { Credential } from '../http/credentials.ts'

/** Security schemes of the credentials (docs/api/credentials.md#credentials). */
export const SECURITY_SCHEMES = {
  publicKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-service-public-key',
    description:
      'Public key of a surface (`pk_…`). Safe to include in browser code. The header takes precedence over the query.',
  },
  publicKeyQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'public_key',
    description: 'Public key of a surface, for clients that cannot send headers (beacons).',
  },
  secretKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'Secret key of a surface (`sk_…`) with the scope `release:write`.',
  },
  workspaceKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Workspace API key (`wk_…`). It has the permissions that are in its scopes and that its creator currently has.',
  },
  sessionToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a signed-in user. Its claim `org` names the workspace.',
  },
  workloadIdentity: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a workload, from a separate issuer. It has the read permissions of its `org`.',
  },
} as const satisfies Record<Credential, unknown>
