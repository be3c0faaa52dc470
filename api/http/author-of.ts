import type { Actor } from '../../schemas/records/change.ts'
import type { Author } from '../../shared/directory/changes/change-log.ts'
import type { Caller } from '../auth/caller.ts'

/** Returns who a caller is, as records have it. */
export function actorOf({ userId, apiKeyId }: Caller): Actor {
  return { userId, apiKeyId }
}

/** Returns the author of the changes that a caller makes at this time. */
export function authorOf(caller: Caller, now: number): Author {
  return { by: actorOf(caller), now }
}
