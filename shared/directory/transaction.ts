import type { Redis } from 'ioredis'
import { TransientError } from '../runtime/errors.ts'

/** A condition of a transaction: the expected reply of a reading command, as text; '' for a missing value. */
export type Guard = readonly [command: 'GET' | 'SCARD' | 'HGET', key: string, expected: string, field?: string]

/** A writing command of Redis. Its first argument is its key, or the channel of a PUBLISH. */
export type Command = readonly [name: string, key: string, ...rest: (string | number | Buffer)[]]

/** Commands that run in one step if all guards are met. Not a group commit of the edge, and not a commit of git. */
export interface DirectoryTransaction {
  readonly guards: readonly Guard[]
  readonly commands: readonly Command[]
}

/**
 * KEYS: all keys that are read or written. ARGV: the number of guards, then each guard as command, key, field and expected
 * reply, then each command after the number of its words. Runs all commands and returns 1, or runs none and returns 0.
 *
 * A Redis that is full refuses the first command that needs memory, and with it the script, before anything has changed.
 * After a command that frees memory has run, it refuses none: a transaction that must succeed in a full Redis begins with
 * such a command.
 */
const COMMIT = `
local at = 2
for _ = 1, tonumber(ARGV[1]) do
  local answer
  if ARGV[at + 2] == '' then answer = redis.call(ARGV[at], ARGV[at + 1])
  else answer = redis.call(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
  if tostring(answer or '') ~= ARGV[at + 3] then return 0 end
  at = at + 4
end
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return 1
`

/** Runs all commands in one step and returns true. Runs none and returns false if a guard is not met. */
export async function commitIf(redis: Redis, { guards, commands }: DirectoryTransaction): Promise<boolean> {
  const written = commands.filter(([name]) => name !== 'PUBLISH').map(([, key]) => key)
  const keys = [...new Set([...guards.map(([, key]) => key), ...written])]
  const words = [
    guards.length,
    ...guards.flatMap(([command, key, expected, field = '']) => [command, key, field, expected]),
    ...commands.flatMap(command => [command.length, ...command]),
  ]
  return (await redis.eval(COMMIT, keys.length, ...keys, ...words)) === 1
}

const ATTEMPTS = 20

/**
 * Reads, decides and commits, and repeats this while the records change in between. `decide` returns the result and the
 * transaction that leads to it, or no transaction if there is nothing to do. Throws a TransientError if the records changed
 * under every attempt.
 */
export async function decideAndCommit<T>(
  redis: Redis,
  decide: () => Promise<{ transaction?: DirectoryTransaction; result: T }>,
): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { transaction, result } = await decide()
    if (transaction === undefined || (await commitIf(redis, transaction))) return result
  }
  throw new TransientError(`the records changed during each of ${ATTEMPTS} attempts to change them`)
}
