import type { KeyObject } from 'node:crypto'
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose'
import { userIdSchema } from '../../schemas/records/directory.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

/** The only algorithms a token may be signed with; which of them a fixed key allows follows from its type. */
export const TOKEN_ALGORITHMS = ['EdDSA', 'ES256', 'RS256'] as const
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number]

export type TokenKind = 'session' | 'workload'

/** Who may sign tokens of one kind. */
export interface TokenIssuer {
  readonly kind: TokenKind
  readonly issuer: string
  readonly audience: string
  /** One public key, or a function that finds the key that a header names (a JWKS). */
  readonly keys: KeyObject | JWTVerifyGetKey
  readonly algorithms: readonly TokenAlgorithm[]
}

export interface TokenClaims {
  readonly kind: TokenKind
  /** The user id; empty for a workload without one. */
  readonly subject: string
  /** The workspace slug, when the token has one. */
  readonly org: string | undefined
}

export type TokenVerdict = { ok: true; claims: TokenClaims } | { ok: false; reason: string }

/** Throws a TransientError when the keys of the issuer cannot be had; a token that is at fault is a value. */
export type VerifyToken = (authorization: string | undefined) => Promise<TokenVerdict>

const CLOCK_TOLERANCE_SECONDS = 5
/** Longer than any token of ours; nothing parses more than that. */
const TOKEN_LENGTH_MAX = 8_192

/** Checks `Authorization: Bearer <JWT>` against the issuer that the token claims, or the first one. */
export function createTokenVerifier(issuers: readonly [TokenIssuer, ...TokenIssuer[]], now: () => number): VerifyToken {
  return async authorization => {
    if (authorization === undefined) return refuse('the Authorization header is absent')
    const token = /^Bearer +([^\s]+)$/i.exec(authorization.slice(0, TOKEN_LENGTH_MAX + 16))?.[1]
    if (token === undefined) return refuse('the Authorization header is not of the form "Bearer <token>"')
    if (token.length > TOKEN_LENGTH_MAX) return refuse('the token is malformed')

    const claimed = claimedIssuer(token)
    const issuer = issuers.find(candidate => candidate.issuer === claimed) ?? issuers[0]
    try {
      const payload = await verifySignature(token, issuer, {
        algorithms: [...issuer.algorithms],
        issuer: issuer.issuer,
        audience: issuer.audience,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(now()),
        requiredClaims: issuer.kind === 'session' ? ['exp', 'sub'] : ['exp'],
      })
      // Text, and no half characters: in Redis, which has UTF-8, those would be another user's id.
      const subject = userIdSchema.optional().safeParse(payload.sub)
      if (!subject.success) return refuse('the claim "sub" of the token is malformed')
      const org = typeof payload.org === 'string' && payload.org !== '' ? payload.org : undefined
      return { ok: true, claims: { kind: issuer.kind, subject: subject.data ?? '', org } }
    } catch (error) {
      const reason = reasonOf(error)
      if (reason === undefined)
        throw new TransientError('the keys of the token issuer could not be had', { cause: error })
      return refuse(reason)
    }
  }
}

async function verifySignature(token: string, issuer: TokenIssuer, options: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, issuer.keys, options)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    // A JWKS whose keys have no ids: each that fits is tried.
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload
      } catch (attempt) {
        if (!(attempt instanceof errors.JWSSignatureVerificationFailed)) throw attempt
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** Only says whose keys to try: nothing of an unverified token is believed. */
function claimedIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** What is wrong with the token, in words for its owner; undefined when it is not the token that is at fault. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return 'the token has expired'
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return `the token has no claim "${error.claim}"`
    if (error.claim === 'iss') return 'the token is of another issuer'
    if (error.claim === 'aud') return 'the token is for another audience'
    if (error.claim === 'nbf') return 'the token is not valid yet'
    return `the claim "${error.claim}" of the token is malformed`
  }
  if (error instanceof errors.JOSEAlgNotAllowed)
    return 'the token is signed with an algorithm that is not accepted here'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'the signature of the token does not verify'
  if (error instanceof errors.JWKSNoMatchingKey)
    return 'the token is signed with a key that its issuer does not publish'
  const malformed = [errors.JWSInvalid, errors.JWTInvalid, errors.JOSENotSupported]
  return malformed.some(kind => error instanceof kind) ? 'the token is malformed' : undefined
}

function refuse(reason: string): TokenVerdict {
  return { ok: false, reason }
}
