import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { RequestHead } from '../../shared/http/route.ts'
import { digestOf, isWellFormedKey } from '../../shared/ids/credentials.ts'
import { keyState } from '../../shared/ids/key-state.ts'

/** A key of a surface, as a request presents it. */
export interface PresentedSurfaceKey {
  readonly kind: SurfaceKey['kind']
  readonly text: string
}

export type SurfaceKeyAccess =
  | { readonly ok: true; readonly key: SurfaceKey }
  | { readonly ok: false; readonly problem: Problem }

export interface SurfaceKeyAccessDeps {
  readonly directory: Pick<Directory, 'surfaceKeyByDigest'>
  readonly now: () => number
}

/**
 * The secret or public key of a request, well-formed or not; undefined when it has none. What is in `Authorization` goes
 * before a public key, whatever it is: a page that sends its key with everything may also send a token.
 */
export function presentedSurfaceKey(head: RequestHead): PresentedSurfaceKey | undefined {
  const authorization = head.header('authorization')
  if (authorization !== undefined) {
    const secret = /^Bearer +(sk_\S*) *$/i.exec(authorization.slice(0, 256))?.[1]
    return secret === undefined ? undefined : { kind: 'secret', text: secret }
  }
  const text = head.header('x-service-public-key') || head.query('public_key')
  return text ? { kind: 'public', text } : undefined
}

/** The key as the directory has it at this moment, if it may be used. Throws what the directory throws. */
export async function surfaceKeyAccess(
  { directory, now }: SurfaceKeyAccessDeps,
  { kind, text }: PresentedSurfaceKey,
): Promise<SurfaceKeyAccess> {
  if (!isWellFormedKey(kind, text)) return refuse(kind, 'malformed')
  const key = await directory.surfaceKeyByDigest(digestOf(text))
  if (key?.kind !== kind) return refuse(kind, 'unknown')
  const state = keyState(key, now())
  return state === 'active' ? { ok: true, key } : refuse(kind, state)
}

/** Of a secret key it is said what is wrong with it, as the edge does (CONTRACT section 2). */
function refuse(kind: SurfaceKey['kind'], state: string): SurfaceKeyAccess {
  const problem: Problem =
    kind === 'secret'
      ? { code: 'AUTH_MISSING', message: `the secret key is ${state}` }
      : { code: 'AUTH_PK_INVALID', message: 'the public key is malformed, unknown, revoked or expired' }
  return { ok: false, problem }
}
