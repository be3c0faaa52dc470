import { importPKCS8, SignJWT } from 'jose'

/** Issuer of the session tokens of a local installation. */
export const LOCAL_ISSUER = 'penstock-local'
/** Audience of the session tokens of a local installation. */
export const LOCAL_AUDIENCE = 'penstock'

/** Contents of a local session token, and the key that signs it. */
interface LocalSession {
  /** Ed25519 key, as PKCS #8 in PEM. */
  readonly privateKey: string
  readonly userId: string
  /** Slug of the workspace. */
  readonly org: string
  /** Unix seconds. */
  readonly issuedAt: number
  /** Unix seconds. */
  readonly expiresAt: number
}

/** Signs a session token (JWT, EdDSA) like that of an identity provider, with the key of a local installation. */
export async function signLocalSession(session: LocalSession): Promise<string> {
  return new SignJWT({ org: session.org })
    .setProtectedHeader({ alg: 'EdDSA' })
    .setSubject(session.userId)
    .setIssuer(LOCAL_ISSUER)
    .setAudience(LOCAL_AUDIENCE)
    .setIssuedAt(session.issuedAt)
    .setExpirationTime(session.expiresAt)
    .sign(await importPKCS8(session.privateKey, 'EdDSA'))
}
