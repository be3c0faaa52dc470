import type { Problem } from '../../schemas/http/problems.ts'

/** The problem with a public key. It does not name the reason, because anybody can read a public key. */
export const PUBLIC_KEY_INVALID: Problem = {
  code: 'AUTH_PK_INVALID',
  message: 'the public key is malformed, unknown, revoked or expired',
}

/** The problem with a secret key, by the reason for which it is refused. */
export const SECRET_KEY_INVALID = {
  malformed: { code: 'AUTH_MISSING', message: 'the secret key is malformed' },
  unknown: { code: 'AUTH_MISSING', message: 'the secret key is unknown' },
  revoked: { code: 'AUTH_MISSING', message: 'the secret key is revoked' },
  expired: { code: 'AUTH_MISSING', message: 'the secret key is expired' },
} as const satisfies Record<string, Problem>
