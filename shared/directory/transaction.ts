import type { Redis } from 'ioredis'
import { TransientError } from '../runtime/errors.ts'

/** What must still hold: the answer of a reading command, as text; '' where there is nothing. */
export type Guard = readonly [command: 'GET' | 'SCARD' | 'HGET', key: string, expected: string, field?: string]

/** A writing command of Redis; its first argument is its key, or the channel of a PUBLISH. */
export type Command = readonly [name: string, key: string, ...rest: (string | number | Buffer)[]]

export interface Commit {
  readonly guards: readonly Guard[]
  readonly commands: readonly Command[]
}

/**
 * KEYS all that is read or written; ARGV number of guards, each as command, key, field and expected answer, then each
 * command with the number of its words before it. Runs all commands, or answers 0 and runs none.
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

/** Runs all commands in one step, unless a guard no longer holds: then none, and false. */
export async function commitIf(redis: Redis, { guards, commands }: Commit): Promise<boolean> {
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
 * Reads, decides and commits until nothing has changed in between. `decide` answers with what to commit and what to
 * return then, or without a commit when there is nothing to do. Throws a TransientError when others always came first.
 */
export async function decideAndCommit<T>(
  redis: Redis,
  decide: () => Promise<{ commit?: Commit; result: T }>,
): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { commit, result } = await decide()
    if (commit === undefined || (await commitIf(redis, commit))) return result
  }
  throw new TransientError(`records changed under each of ${ATTEMPTS} attempts to change them`)
}
