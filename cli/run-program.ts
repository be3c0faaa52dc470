import { type Command, CommanderError } from 'commander'
import { ConfigError } from '../shared/runtime/config.ts'
import { describeError } from '../shared/runtime/errors.ts'
import type { CommandContext } from './command-context.ts'
import { EXIT } from './exit-codes.ts'

/** Runs the command that the words name; what it throws is one line for the operator and an exit code. */
export async function runProgram(
  program: Command,
  words: readonly string[],
  { printError, exit }: Pick<CommandContext, 'printError' | 'exit'>,
): Promise<void> {
  try {
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    // What Commander throws it has printed; help that was asked for ends well.
    if (error instanceof CommanderError) return exit(error.exitCode === 0 ? EXIT.done : EXIT.usage)
    printError(describeError(error))
    exit(error instanceof ConfigError ? EXIT.usage : EXIT.failed)
  }
}
