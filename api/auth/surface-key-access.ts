import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../schemas/records/key-form.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { presentedPublicKey, publicKeyOf } from '../../shared/http/presented-key.ts'
import type { RequestHead } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import { type KeyFault, PUBLIC_KEY_INVALID, SECRET_KEY_INVALID } from '../../shared/ids/key-problems.ts'
import { keyState } from '../../shared/ids/key-state.ts'

/** A key of a surface as the request sent it, well-formed or not. */
export interface PresentedSurfaceKey {
  readonly kind: SurfaceKey['kind']
  readonly text: string
}

/** The result of a check: the active key, or the problem to return. */
type SurfaceKeyAccess =
  | { readonly ok: true; readonly key: SurfaceKey }
  | { readonly ok: false; readonly problem: Problem }

interface Deps {
  readonly directory: Pick<Directory, 'effectiveSurfaceKey'>
  readonly now: () => number
}

/**
 * Returns the secret or public key of a request, or undefined if it has none. Any value of `Authorization` takes precedence
 * over a public key, because a page that sends its public key with every request may also send a token.
 */
export function presentedSurfaceKey(head: RequestHead): PresentedSurfaceKey | undefined {
  const authorization = head.header('authorization')
  if (authorization !== undefined) {
    const secret = /^Bearer +(sk_\S*) *$/i.exec(authorization.slice(0, 256))?.[1]
    if (secret !== undefined) return { kind: 'secret', text: secret }
    const key = publicKeyOf(authorization)
    return key === undefined ? undefined : { kind: 'public', text: key }
  }
  const text = presentedPublicKey(head)
  return text === undefined ? undefined : { kind: 'public', text }
}

/**
 * Checks a key against its current record in the directory (docs/api/credentials.md#credentials). Throws what the directory
 * throws.
 */
export async function surfaceKeyAccess(
  { directory, now }: Deps,
  { kind, text }: PresentedSurfaceKey,
): Promise<SurfaceKeyAccess> {
  if (!isWellFormedKey(kind, text)) return refuse(kind, 'malformed')
  const key = await directory.effectiveSurfaceKey(digestOf(text))
  if (key?.kind !== kind) return refuse(kind, 'unknown')
  const state = keyState(key, now())
  return state === 'active' ? { ok: true, key } : refuse(kind, state)
}

function refuse(kind: SurfaceKey['kind'], fault: KeyFault): SurfaceKeyAccess {
  return { ok: false, problem: (kind === 'secret' ? SECRET_KEY_INVALID : PUBLIC_KEY_INVALID)[fault] }
}
