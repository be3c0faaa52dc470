import { hash, type KeyObject } from 'node:crypto'
import {
  decodeJwt,
  errors,
  type JWTHeaderParameters,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose'
import { userIdSchema } from '../../schemas/records/directory.ts'
import { DAY_S } from '../../schemas/units.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

/** The only algorithms that a token may be signed with. A fixed key allows the one that fits its type. */
export const TOKEN_ALGORITHMS = ['EdDSA', 'ES256', 'RS256'] as const
/** One of the accepted algorithms. */
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number]

/** A token of a signed-in user, or of a workload. */
type TokenKind = 'session' | 'workload'

/** An issuer whose tokens of one kind are accepted. */
export interface TokenIssuer {
  readonly kind: TokenKind
  readonly issuer: string
  readonly audience: string
  /** One public key, or a function that finds the key that the token's header names (a JWKS). */
  readonly keys: KeyObject | JWTVerifyGetKey
  readonly algorithms: readonly TokenAlgorithm[]
}

/** The claims of a verified token that the API uses. */
export interface TokenClaims {
  readonly kind: TokenKind
  /** The user id; empty for a workload without one. */
  readonly subject: string
  /** The slug of the workspace, if the token has one. */
  readonly org: string | undefined
}

/** The claims of a valid token, or the reason why it is refused. */
export type TokenVerdict = { ok: true; claims: TokenClaims } | { ok: false; reason: string }

/** Verifies the token of an `Authorization` header. Throws a TransientError if the keys of its issuer cannot be fetched. */
export type VerifyToken = (authorization: string) => Promise<TokenVerdict>

const CLOCK_TOLERANCE_SECONDS = 5
const LIFETIME_MAX_SECONDS = 30 * DAY_S
/** Longer than any token that an issuer of this service creates. Longer ones are refused before they are parsed. */
const TOKEN_LENGTH_MAX = 8_192
const TOO_LONG = 'the token is too long: at most 8,192 characters, so let its issuer leave out groups or other claims'

const REMEMBERED_TOKENS = 10_000

/** A token whose signature was verified, with the key that verified it. */
interface RememberedToken {
  readonly verdict: TokenVerdict
  readonly untilMs: number
  readonly issuer: TokenIssuer
  readonly header: JWTHeaderParameters
  readonly key: unknown
}

/**
 * Creates the check of `Authorization: Bearer <JWT>` against the issuer that the token claims, or else the first issuer.
 * Verifying a signature takes 158 µs of CPU, so tokens that were accepted are remembered by their digest until they expire. The
 * key is looked up for each request nevertheless: a token is verified again once its issuer has another key for it, or none.
 */
export function createTokenVerifier(issuers: readonly [TokenIssuer, ...TokenIssuer[]], now: () => number): VerifyToken {
  const remembered = new Map<string, RememberedToken>()
  return async authorization => {
    const token = /^Bearer +([^\s]+)$/i.exec(authorization.slice(0, TOKEN_LENGTH_MAX + 16))?.[1]
    if (token === undefined) return refuse('the Authorization header must have the form "Bearer <token>"')
    if (token.length > TOKEN_LENGTH_MAX) return refuse(TOO_LONG)
    const digest = hash('sha256', token, 'base64')
    const known = remembered.get(digest)
    if (known !== undefined && now() < known.untilMs && (await hasSameKey(known))) return known.verdict

    const claimed = claimedIssuer(token)
    const issuer = issuers.find(candidate => candidate.issuer === claimed) ?? issuers[0]
    try {
      const { payload, protectedHeader, key } = await verifySignature(token, issuer, {
        algorithms: [...issuer.algorithms],
        issuer: issuer.issuer,
        audience: issuer.audience,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(now()),
        requiredClaims: issuer.kind === 'session' ? ['exp', 'sub'] : ['exp'],
      })
      const fault = faultOf(payload, protectedHeader, Math.floor(now() / 1_000))
      if (fault !== undefined) return refuse(fault)
      // The id must be valid Unicode: Redis keys are UTF-8, where all lone surrogates would be the same user.
      const subject = userIdSchema.optional().safeParse(payload.sub)
      if (!subject.success) return refuse('the claim "sub" of the token is malformed')
      const org = typeof payload.org === 'string' && payload.org !== '' ? payload.org : undefined
      const verdict = { ok: true, claims: { kind: issuer.kind, subject: subject.data ?? '', org } } as const
      const untilMs = (payload.exp ?? 0) * 1_000
      if (key !== undefined) {
        setBounded(remembered, REMEMBERED_TOKENS, digest, { verdict, untilMs, issuer, header: protectedHeader, key })
      }
      return verdict
    } catch (error) {
      const reason = reasonOf(error)
      if (reason !== undefined) return refuse(reason)
      throw new TransientError('the keys of the token issuer cannot be fetched', { cause: error })
    }
  }
}

/**
 * Returns what is wrong with a token that its issuer has signed, besides what every verifier looks at. Logout and ID tokens of an
 * issuer can have the same audience, so a token must state no other type.
 */
function faultOf({ exp = 0, iat }: JWTPayload, { typ }: JWTHeaderParameters, nowSeconds: number): string | undefined {
  if (typ !== undefined && !/^(application\/)?(at\+)?jwt$/i.test(typ))
    return 'the type of the token is not JWT or at+jwt'
  if ((iat ?? 0) > nowSeconds + CLOCK_TOLERANCE_SECONDS) return 'the token was issued in the future'
  if (exp - (iat ?? nowSeconds) > LIFETIME_MAX_SECONDS) return 'the token is valid for more than 30 days'
  return undefined
}

/** Returns whether the issuer still has the key that verified the token. A fault is found again when the token is verified. */
async function hasSameKey({ issuer: { keys }, header, key }: RememberedToken): Promise<boolean> {
  if (typeof keys !== 'function') return keys === key
  try {
    return (await keys(header, { payload: '', signature: '' })) === key
  } catch {
    return false
  }
}

/** Verifies a token and returns the key that did it, or no key if several had to be tried. */
async function verifySignature(
  token: string,
  { keys }: TokenIssuer,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult & { readonly key: unknown }> {
  if (typeof keys !== 'function') return { ...(await jwtVerify(token, keys, options)), key: keys }
  let found: unknown
  const find: JWTVerifyGetKey = async (...header) => {
    const key = await keys(...header)
    found = key
    return key
  }
  try {
    const verified = await jwtVerify(token, find, options)
    return { ...verified, key: found }
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    // The keys of this JWKS have no ids, so each one that fits is tried.
    for await (const key of error) {
      try {
        return { ...(await jwtVerify(token, key, options)), key: undefined }
      } catch (attempt) {
        if (!(attempt instanceof errors.JWSSignatureVerificationFailed)) throw attempt
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** Returns the issuer that an unverified token claims. It only selects the keys to try, and is verified with them. */
function claimedIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** Returns what is wrong with the token, or undefined if the error has another cause than the token. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return 'the token has expired'
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return `the token has no claim "${error.claim}"`
    if (error.claim === 'iss') return 'the token is from another issuer'
    if (error.claim === 'aud') return 'the token is for another audience'
    if (error.claim === 'nbf') return 'the token is not valid yet'
    return `the claim "${error.claim}" of the token is malformed`
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return 'the token is signed with an algorithm that is not accepted'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'the signature of the token is invalid'
  if (error instanceof errors.JWKSNoMatchingKey)
    return 'the token is signed with a key that its issuer does not publish'
  const malformed = [errors.JWSInvalid, errors.JWTInvalid, errors.JOSENotSupported]
  return malformed.some(kind => error instanceof kind) ? 'the token is malformed' : undefined
}

function refuse(reason: string): TokenVerdict {
  return { ok: false, reason }
}
