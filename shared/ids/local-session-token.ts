import { importPKCS8, SignJWT } from 'jose'

/** Who signs the session tokens of a local installation, and for whom. */
export const LOCAL_ISSUER = 'penstock-local'
export const LOCAL_AUDIENCE = 'penstock'

export interface LocalSession {
  /** PKCS #8, PEM, of an Ed25519 key. */
  readonly privateKey: string
  readonly userId: string
  /** The slug of the workspace. */
  readonly org: string
  /** Both in Unix seconds. */
  readonly issuedAt: number
  readonly expiresAt: number
}

/** A session token (JWT, EdDSA) as an identity provider would give it, from the key of a local installation. */
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
