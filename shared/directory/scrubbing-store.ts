import { createHmac } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type Scrubbing, scrubbingSchema } from '../../schemas/records/scrubbing.ts'
import type { Author } from './changes/change-log.ts'
import { ensureReceiptSecret } from './receipt-secret.ts'
import { directoryKeys as keys } from './record.ts'
import { createRevisedRules, type NewRules } from './revised-rules.ts'
import type { Command } from './transaction.ts'

/** Stores the rules by which what workspaces receive is scrubbed (docs/api/scrubbing.md). */
export interface ScrubbingStore {
  /** Returns the rules of a workspace, or undefined if it has the default ones. */
  scrubbing(workspaceId: string): Promise<Scrubbing | undefined>
  /** Returns the rules that had this revision, if they are the current ones or among the last before them. */
  scrubbingAt(workspaceId: string, revision: number): Promise<Scrubbing | undefined>
  /** Replaces the rules. Returns the current revision instead if they have another one than `revision`. */
  replaceScrubbing(rules: NewRules<Scrubbing>, author: Author): Promise<Scrubbing | number>
  /** Returns the key with which values of a workspace are hashed. */
  scrubbingKey(workspaceId: string): Promise<Buffer>
}

/** Creates the part of the directory that stores rules of scrubbing. */
export function createScrubbingStore(redis: Redis): ScrubbingStore {
  const rules = createRevisedRules<Scrubbing>(redis, {
    key: keys.scrubbing,
    earlierKey: keys.earlierScrubbing,
    schema: scrubbingSchema,
    action: 'scrubbing.changed',
    write: writeScrubbing,
  })
  return {
    scrubbing: rules.current,
    scrubbingAt: rules.at,
    replaceScrubbing: rules.replace,
    async scrubbingKey(workspaceId) {
      const secret = await ensureReceiptSecret(redis)
      return createHmac('sha256', secret)
        .update(JSON.stringify(['scrubbing', workspaceId]))
        .digest()
    },
  }
}

/** Returns the commands that store rules. */
export function writeScrubbing(rules: Scrubbing): Command[] {
  return [['SET', keys.scrubbing(rules.workspaceId), JSON.stringify(scrubbingSchema.parse(rules))]]
}
