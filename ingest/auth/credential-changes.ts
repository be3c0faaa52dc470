import type { Redis } from 'ioredis'
import { CREDENTIAL_CHANGES_CHANNEL } from '../../shared/directory/record.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Judgement, KeyCache } from './key-cache.ts'

/**
 * Tells caches when a key changes: changes are pushed, and a push channel that breaks, or begins again, empties them.
 * `subscriber` is a connection of its own.
 */
export function followCredentialChanges(
  { subscriber, logger }: { subscriber: Redis; logger: Logger },
  caches: readonly Pick<KeyCache<Judgement>, 'forget' | 'forgetAll'>[],
): void {
  const forgetAll = () => {
    for (const cache of caches) cache.forgetAll()
  }
  subscriber.on('ready', () => {
    forgetAll()
    subscriber.subscribe(CREDENTIAL_CHANGES_CHANNEL).catch(error => {
      logger.warn({ error: describeError(error) }, 'changes of credentials cannot be followed')
    })
  })
  subscriber.on('close', forgetAll)
  subscriber.on('message', (_channel, digest: string) => {
    for (const cache of caches) cache.forget(digest)
  })
}
