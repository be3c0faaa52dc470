import type { Redis } from 'ioredis'
import { type Installation, installationSchema } from '../../schemas/records/installation.ts'
import { directoryKeys, parseRecord } from './record.ts'
import { decideAndCommit } from './transaction.ts'

const KEY = directoryKeys.installation

/** Reads the record of the installation; undefined before it is made, and once the directory has lost it. */
export async function readInstallation(redis: Redis): Promise<Installation | undefined> {
  return parse(await redis.get(KEY))
}

/**
 * Changes the record in one step. `change` may run several times, and returns the record to store, or undefined to store nothing.
 * Returns the record that is stored afterwards.
 */
export function changeInstallation(
  redis: Redis,
  change: (before: Installation | undefined) => Installation | undefined,
): Promise<Installation | undefined> {
  return decideAndCommit(redis, async () => {
    const text = await redis.get(KEY)
    const before = parse(text)
    const after = change(before)
    if (after === undefined) return { result: before }
    const guards = [['GET', KEY, text ?? ''] as const]
    return { transaction: { guards, commands: [['SET', KEY, JSON.stringify(after)]] }, result: after }
  })
}

function parse(text: string | null): Installation | undefined {
  return text === null ? undefined : parseRecord(KEY, text, installationSchema)
}
