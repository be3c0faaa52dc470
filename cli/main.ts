import { Command } from 'commander'
import { pino } from 'pino'
import { parseConfig } from '../shared/runtime/config.ts'
import type { CommandContext } from './command-context.ts'
import { addDirectoryCommands } from './commands/groups.ts'
import { addSessionsDelete } from './commands/sessions-delete.ts'
import { addSourcemapsUpload } from './commands/sourcemaps-upload.ts'
import { cliConfigSchema, directoryConfigSchema } from './config.ts'
import { withDirectory } from './connect.ts'
import { EXIT } from './exit-codes.ts'
import { withLocalStores } from './local-environment.ts'
import { runProgram } from './run-program.ts'
import { writeText } from './write-text.ts'

/** `npm run cli -- …`: what an operator does by hand. Takes the settings of the other processes (deploy/env.example). */
const program = new Command('penstock').description('operate a Penstock installation').exitOverride()
// Failures reach the operator as one line; the log of the connections would only surround it.
const logger = pino({ level: 'silent' })
const context: CommandContext = {
  print: text => console.log(text),
  printError: text => console.error(text),
  async withStores(run) {
    // Most commands need none of these clients, which take longer to load than the commands take.
    const { withStores } = await import('./connect-stores.ts')
    await withStores(parseConfig(cliConfigSchema, await withLocalStores(process.env, process.cwd())), logger, run)
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
addDirectoryCommands(program, {
  ...context,
  async withDirectory(run) {
    await withDirectory(
      parseConfig(directoryConfigSchema, await withLocalStores(process.env, process.cwd())),
      logger,
      run,
    )
  },
  write: text => writeText(process.stdout, text),
  stdin: process.stdin,
  env: process.env,
  directory: process.cwd(),
  now: Date.now,
})

// Whoever reads the output has gone (EPIPE): nothing is left to say.
process.stdout.on('error', () => process.exit(EXIT.failed))
await runProgram(program, process.argv.slice(2), context)
