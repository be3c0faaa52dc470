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
} as const
export type Credential = keyof typeof SECURITY_SCHEMES

/** What authenticates telemetry. */
export const PUBLIC_KEY: readonly Credential[] = ['publicKeyHeader', 'publicKeyQuery']
/** What may read. */
export const READER: readonly Credential[] = ['sessionToken', 'workloadIdentity']
/** What manages surfaces. */
export const MANAGER: readonly Credential[] = ['sessionToken', 'workspaceKey']
/** What reads them. */
export const MANAGING_READER: readonly Credential[] = [...READER, 'workspaceKey']
