import type { Credential } from '../http/credentials.ts'

/** The credentials of CONTRACT section 2 as OpenAPI has them. */
export const SECURITY_SCHEMES = {
  publicKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-service-public-key',
    description: 'Public key of a surface (`pk_…`). Safe to include in browser code. The header wins over the query.',
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
      'Workspace API key (`wk_…`). Its access is its scopes, as far as its creator has these permissions at the moment.',
  },
  sessionToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a signed-in user; its claim `org` names the workspace.',
  },
  workloadIdentity: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of a workload, by an issuer of its own. Has the read permissions of its `org`.',
  },
} as const satisfies Record<Credential, unknown>
