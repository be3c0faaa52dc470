import type { Redis } from 'ioredis'
import { TransientError } from '../runtime/errors.ts'
import { directoryScript } from './directory-script.ts'

/** A condition of a transaction: the expected reply of a reading command, as text; '' for a missing value. */
export type Guard = readonly [command: 'GET' | 'SCARD' | 'HGET', key: string, expected: string, field?: string]

/** A writing command of Redis. Its first argument is its key, or the channel of a PUBLISH. */
export type Command = readonly [name: string, key: string, ...rest: (string | number | Buffer)[]]

/** Commands that run in one step if all guards are met. Not a group commit of the edge, and not a commit of git. */
export interface DirectoryTransaction {
  readonly guards: readonly Guard[]
  readonly commands: readonly Command[]
}

const COMMIT = directoryScript('commit')

/** Runs all commands in one step and returns true. Runs none and returns false if a guard is not met. */
export async function commitIf(redis: Redis, { guards, commands }: DirectoryTransaction): Promise<boolean> {
  const written = commands.filter(([name]) => name !== 'PUBLISH').map(([, key]) => key)
  const keys = [...new Set([...guards.map(([, key]) => key), ...written])]
  const words = [
    guards.length,
    ...guards.flatMap(([command, key, expected, field = '']) => [command, key, field, expected]),
    ...commands.flatMap(command => [command.length, ...command]),
  ]
  return (await COMMIT.run(redis, keys, words)) === 1
}

const ATTEMPTS = 20

/** A result, and the transaction that leads to it. Without one there is nothing to do. */
export interface Decision<T> {
  readonly transaction?: DirectoryTransaction
  readonly result: T
}

/**
 * Reads, decides and commits, and repeats this while the records change in between. Throws a TransientError if the
 * records changed under every attempt.
 */
export async function decideAndCommit<T>(redis: Redis, decide: () => Promise<Decision<T>>): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { transaction, result } = await decide()
    if (transaction === undefined || (await commitIf(redis, transaction))) return result
  }
  throw new TransientError(`the records changed during each of ${ATTEMPTS} attempts to change them`)
}
