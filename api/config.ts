import { createPublicKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { deliverySettings } from '../alerts/delivery/settings.ts'
import { identityProvidersSchema } from '../schemas/http/sessions/identify-session.ts'
import { MIB } from '../schemas/units.ts'
import {
  clickhouseSettings,
  count,
  httpSettings,
  httpUrl,
  objectStoreSettings,
  port,
  processSettings,
  redisSettings,
  retentionSettings,
} from '../shared/runtime/config.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { createRemoteKeys } from './auth/remote-keys.ts'
import { TOKEN_ALGORITHMS, type TokenAlgorithm, type TokenIssuer } from './auth/verify-token.ts'

/** URL that is fetched. `fetch` refuses a URL with a user name or password, and its error, which is logged, would show them. */
const fetchedUrl = httpUrl().refine(text => !hasCredentials(text), 'must not have a user name or password')

function hasCredentials(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && `${url.username}${url.password}` !== ''
}

/** Schema of the environment variables of the API. */
export const apiConfigSchema = z
  .object({
    ...processSettings,
    ...httpSettings,
    ...redisSettings,
    ...clickhouseSettings,
    ...objectStoreSettings,
    API_PORT: port(4300),
    API_ADMIN_PORT: port(4301),
    /** How long one read may take in total, in ms. Then it returns 503. */
    API_QUERY_TIMEOUT_MS: count(10_000),
    /**
     * Most stored log records that one query of a search reads. A search of more is refused, with a message that states how to
     * narrow it. A million records take 0.1 to 0.2 CPU s of ClickHouse where words or attributes are compared
     * (docs/decisions/031).
     */
    LOG_SEARCH_ROWS: count(100_000_000),
    ...retentionSettings,
    ...deliverySettings,
    /** How many replays may be read at once. A workspace may read as many as are still free; further ones return 429. */
    REPLAY_STREAMS: count(16),
    SHUTDOWN_DEADLINE_MS: count(15_000),
    /** Limit of the request bodies in memory, in bytes. */
    HELD_BODY_BYTES: count(64 * MIB),
    /** The same as at the edge. Only /openapi.json uses it here, because both serve the same document. */
    IDENTITY_PROVIDERS: identityProvidersSchema,
    /** Server secret from which, with the salt of each creation, the secrets of keys are derived. */
    KEY_PEPPER: z
      .string({ error: 'is required: set a secret of at least 32 bytes, the same for each API' })
      .refine(pepper => Buffer.byteLength(pepper) >= 32, 'must have at least 32 bytes'),
    /** Keys of session tokens: exactly one of the two is set. The key is an SPKI PEM, in which `\n` may replace line breaks. */
    AUTH_JWKS_URL: fetchedUrl.optional(),
    AUTH_PUBLIC_KEY: z
      .string()
      .transform(pem => pem.replaceAll('\\n', '\n'))
      .refine(
        pem => keyAlgorithm(pem) !== undefined,
        'must be the SPKI PEM of an Ed25519, P-256 or RSA (2048+) public key',
      )
      .optional(),
    AUTH_ISSUER: z.string({ error: 'is required: set the issuer (iss) of session tokens' }),
    AUTH_AUDIENCE: z.string({ error: 'is required: set the audience (aud) of session tokens' }),
    /**
     * The OpenID provider that signs the users of the console in, as its discovery document names itself. Unset: there is no
     * console. Its access tokens must be session tokens.
     */
    CONSOLE_ISSUER: fetchedUrl.optional(),
    /** Id of the console at this provider, as a public client with PKCE. Its redirect URI is `<address>/console/`. */
    CONSOLE_CLIENT_ID: z.string().default('penstock-console'),
    /** Scopes that the console asks for. */
    CONSOLE_SCOPE: z.string().default('openid'),
    /** The parameter `audience`, without which some providers give tokens that are no JWTs. */
    CONSOLE_AUDIENCE: z.string().optional(),
    /** Workload identity: all three are set, or none. Without them no workload is accepted. */
    WORKLOAD_JWKS_URL: fetchedUrl.optional(),
    WORKLOAD_ISSUER: z.string().optional(),
    WORKLOAD_AUDIENCE: z.string().optional(),
  })
  .superRefine((config, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if ((config.AUTH_JWKS_URL === undefined) === (config.AUTH_PUBLIC_KEY === undefined)) {
      refuse('AUTH_JWKS_URL', 'must be set, or AUTH_PUBLIC_KEY, and not both')
    }
    const workload = [config.WORKLOAD_JWKS_URL, config.WORKLOAD_ISSUER, config.WORKLOAD_AUDIENCE]
    if (workload.includes(undefined) && workload.some(value => value !== undefined)) {
      refuse('WORKLOAD_ISSUER', 'set all of WORKLOAD_ISSUER, WORKLOAD_JWKS_URL and WORKLOAD_AUDIENCE, or none')
    }
    // The issuer distinguishes the tokens of workloads from those of users.
    if (config.WORKLOAD_ISSUER === config.AUTH_ISSUER) refuse('WORKLOAD_ISSUER', 'must differ from AUTH_ISSUER')
  })

/** The validated configuration of the API. */
export type ApiConfig = Readonly<z.infer<typeof apiConfigSchema>>

/** Returns the issuers whose tokens are accepted. The keys of a JWKS are fetched with the first token. */
export function tokenIssuers(config: ApiConfig, logger: Logger, now: () => number): [TokenIssuer, ...TokenIssuer[]] {
  const remoteKeys = (url: string) => createRemoteKeys({ url, logger, now })
  const session = { kind: 'session', issuer: config.AUTH_ISSUER, audience: config.AUTH_AUDIENCE } as const
  const issuers: [TokenIssuer, ...TokenIssuer[]] = [{ ...session, ...sessionKeys(config, remoteKeys) }]
  if (config.WORKLOAD_ISSUER && config.WORKLOAD_AUDIENCE && config.WORKLOAD_JWKS_URL) {
    issuers.push({
      kind: 'workload',
      issuer: config.WORKLOAD_ISSUER,
      audience: config.WORKLOAD_AUDIENCE,
      keys: remoteKeys(config.WORKLOAD_JWKS_URL),
      algorithms: TOKEN_ALGORITHMS,
    })
  }
  return issuers
}

function sessionKeys(
  config: ApiConfig,
  remoteKeys: (url: string) => TokenIssuer['keys'],
): Pick<TokenIssuer, 'keys' | 'algorithms'> {
  if (config.AUTH_JWKS_URL) return { keys: remoteKeys(config.AUTH_JWKS_URL), algorithms: TOKEN_ALGORITHMS }
  const pem = config.AUTH_PUBLIC_KEY ?? ''
  const algorithm = keyAlgorithm(pem)
  if (algorithm === undefined) throw new Error('the schema must have refused this key')
  return { keys: createPublicKey(pem), algorithms: [algorithm] }
}

/** Returns the one algorithm that a public key fits, or undefined if no accepted algorithm uses such a key. */
function keyAlgorithm(pem: string): TokenAlgorithm | undefined {
  let key: KeyObject
  try {
    if (!pem.includes('-----BEGIN PUBLIC KEY-----')) return undefined
    key = createPublicKey(pem)
  } catch {
    return undefined
  }
  const details = key.asymmetricKeyDetails
  if (key.asymmetricKeyType === 'ed25519') return 'EdDSA'
  if (key.asymmetricKeyType === 'ec' && details?.namedCurve === 'prime256v1') return 'ES256'
  if (key.asymmetricKeyType === 'rsa' && (details?.modulusLength ?? 0) >= 2048) return 'RS256'
  return undefined
}
