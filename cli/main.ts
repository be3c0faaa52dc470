import { Command, CommanderError } from 'commander'
import { pino } from 'pino'
import { ConfigError, parseConfig } from '../shared/config.ts'
import { describeError } from '../shared/errors.ts'
import type { CommandContext } from './command-context.ts'
import { cliConfigSchema } from './config.ts'
import { EXIT } from './exit-codes.ts'
import { withLocalStores } from './local-environment.ts'
import { addSessionsDelete } from './sessions-delete.ts'
import { addSourcemapsUpload } from './sourcemaps-upload.ts'

/** `npm run cli -- …`: what an operator does by hand. Takes the settings of the other processes (deploy/env.example). */
const program = new Command('penstock').description('operate a Penstock installation').exitOverride()
const context: CommandContext = {
  print: text => console.log(text),
  printError: text => console.error(text),
  async withStores(run) {
    // Builds need none of the clients of the stores, which take longer to load than a small upload.
    const { withStores } = await import('./connect-stores.ts')
    const config = parseConfig(cliConfigSchema, await withLocalStores(process.env, process.cwd()))
    // Failures reach the operator as one line; the log of the connections would only surround it.
    await withStores(config, pino({ level: 'silent' }), run)
  },
  exit(code) {
    process.exitCode = code
  },
}
addSessionsDelete(program.command('sessions').description('the sessions of a workspace'), context)
addSourcemapsUpload(program.command('sourcemaps').description('the source maps of a release'), {
  ...context,
  env: process.env,
  directory: process.cwd(),
  stderr: process.stderr,
  onStop: stop => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  },
})

try {
  await program.parseAsync()
} catch (error) {
  // What Commander throws it has printed; help that was asked for ends well.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage
  else {
    console.error(describeError(error))
    process.exitCode = error instanceof ConfigError ? EXIT.usage : EXIT.failed
  }
}
