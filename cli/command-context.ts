import type { DirectoryConnection } from './connect.ts'
import type { Stores } from './connect-stores.ts'
import type { ExitCode } from './exit-codes.ts'

/** What every command is given. */
export interface CommandContext {
  readonly print: (text: string) => void
  readonly printError: (text: string) => void
  readonly withStores: (run: (stores: Stores) => Promise<void>) => Promise<void>
  /** The code to end with, once the command has returned. */
  readonly exit: (code: ExitCode) => void
}

/** What the commands are given that need the directory alone. */
export interface DirectoryCommandContext extends Pick<CommandContext, 'print' | 'printError' | 'exit'> {
  readonly withDirectory: (run: (directory: DirectoryConnection) => Promise<void>) => Promise<void>
  /** Writes text to stdout, and waits while whoever reads it is slow. */
  readonly write: (text: string) => Promise<void>
  readonly stdin: AsyncIterable<Uint8Array>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where the command runs. */
  readonly directory: string
  readonly now: () => number
}
