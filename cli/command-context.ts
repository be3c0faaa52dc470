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
