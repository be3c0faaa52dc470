import type { Problem } from '../../schemas/http/problems.ts'

/** Why a key is refused. Only who has the whole key learns that it is revoked or expired; any other key is unknown. */
export type KeyFault = 'malformed' | 'unknown' | 'revoked' | 'expired'

/** The problem with a public key, by the reason for which it is refused. */
export const PUBLIC_KEY_INVALID = {
  malformed: { code: 'AUTH_PK_INVALID', message: 'the public key is malformed' },
  unknown: { code: 'AUTH_PK_INVALID', message: 'the public key is unknown' },
  revoked: { code: 'AUTH_PK_INVALID', message: 'the public key is revoked' },
  expired: { code: 'AUTH_PK_INVALID', message: 'the public key is expired' },
} as const satisfies Record<KeyFault, Problem>

/** The problem with a secret key, by the reason for which it is refused. */
export const SECRET_KEY_INVALID = {
  malformed: { code: 'AUTH_MISSING', message: 'the secret key is malformed' },
  unknown: { code: 'AUTH_MISSING', message: 'the secret key is unknown' },
  revoked: { code: 'AUTH_MISSING', message: 'the secret key is revoked' },
  expired: { code: 'AUTH_MISSING', message: 'the secret key is expired' },
} as const satisfies Record<KeyFault, Problem>
