import { existsSync } from 'node:fs'
import { Command } from 'commander'
import { pino } from 'pino'
import { BUILD } from '../shared/runtime/build-info.ts'
import { parseConfig } from '../shared/runtime/config.ts'
import {
  backupConfigSchema,
  cliConfigSchema,
  clickhouseConfigSchema,
  directoryConfigSchema,
  doctorConfigSchema,
  installationConfigSchema,
  queuesConfigSchema,
} from './config.ts'
import {
  withBackups,
  withBuckets,
  withClickHouse,
  withDirectory,
  withExamined,
  withInstallation,
  withQueues,
  withStores,
} from './connect.ts'
import { EXIT } from './exit-codes.ts'
import { withLocalStores } from './local-environment.ts'
import { addCommands, type ProgramContext, runProgram } from './program.ts'
import { writeContent } from './terminal.ts'

/** Starts `npm run cli -- …`. It reads the settings of the other processes (deploy/env.example). */
const program = new Command('penstock')
  .description('operate a Penstock installation')
  .version(BUILD.version)
  // After the name of a command, --version is an option of that command: the version of a release.
  .enablePositionalOptions()
  .exitOverride()
// A failure is one line on stderr, so the connections do not log.
const logger = pino({ level: 'silent' })
const environment = () => withLocalStores(process.env, process.cwd())
const context: ProgramContext = {
  print: text => console.log(text),
  printError: text => console.error(text),
  exit(code, error) {
    if (error !== undefined) console.error(error)
    process.exitCode = code
  },
  withDirectory: async run => withDirectory(parseConfig(directoryConfigSchema, await environment()), logger, run),
  withQueues: async run => withQueues(parseConfig(queuesConfigSchema, await environment()), logger, run),
  withClickHouse: async run => withClickHouse(parseConfig(clickhouseConfigSchema, await environment()), run),
  environment,
  withBackups: async run => withBackups(parseConfig(backupConfigSchema, await environment()), logger, run),
  withStores: async run => withStores(parseConfig(cliConfigSchema, await environment()), logger, run),
  withExamined: async run => {
    const env = await environment()
    return withExamined({ config: parseConfig(doctorConfigSchema, env), env }, logger, run)
  },
  withBuckets: async (bucket, run) =>
    withBuckets(parseConfig(installationConfigSchema, await environment()), bucket, run),
  withInstallation: async (bucket, run) =>
    withInstallation(parseConfig(installationConfigSchema, await environment()), bucket, logger, run),
  write: content => writeContent(process.stdout, content),
  // Loading undici takes a tenth of a second.
  fetch: namesProxy(process.env)
    ? async (...request) => (await import('./proxied-fetch.ts')).proxiedFetch(...request)
    : fetch,
  stdin: process.stdin,
  stderr: process.stderr,
  env: process.env,
  directory: process.cwd(),
  now: Date.now,
  onStop: stop => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  },
}
addCommands(program, context)
// penstock.mjs runs these two. An image has no local servers.
if (existsSync(new URL('../deploy/local/bootstrap.mjs', import.meta.url))) {
  const local = { start: 'run Penstock and its stores on this machine', 'console:link': 'print a link to its console' }
  const lines = Object.entries(local).map(([name, text]) => `\n  ${name.padEnd(21)} ${text}`)
  program.addHelpText('after', `\nOn this machine:${lines.join('')}`)
}

// stdout was closed (EPIPE), for example by `head`.
process.stdout.on('error', () => process.exit(EXIT.failed))
await runProgram(program, process.argv.slice(2), context)

function namesProxy(env: NodeJS.ProcessEnv): boolean {
  return Object.entries(env).some(([name, value]) => /^https?_proxy$/i.test(name) && value !== '')
}
