import { Readable } from 'node:stream'
import { Command } from 'commander'
import { pino } from 'pino'
import {
  backupConfigSchema,
  cliConfigSchema,
  clickhouseConfigSchema,
  directoryConfigSchema,
  doctorConfigSchema,
  installationConfigSchema,
  queuesConfigSchema,
} from '../../../cli/config.ts'
import {
  withBackups,
  withBuckets,
  withClickHouse,
  withDirectory,
  withExamined,
  withInstallation,
  withQueues,
  withStores,
} from '../../../cli/connect.ts'
import { addCommands, addDirectoryCommands, type ProgramContext, runProgram } from '../../../cli/program.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'

/** Exit code and output of a command. */
interface CliRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Input, environment and clock of a command. */
export interface CliSettings {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly directory?: string
  readonly now?: () => number
}

/** Runs a command of the directory or of backups in this process, on the stores of the environment. */
export function runDirectoryCli(words: readonly string[], settings: CliSettings): Promise<CliRun> {
  return runCommand(addDirectoryCommands, words, settings)
}

/** Runs any command in this process, on the stores of the environment. */
export function runCli(words: readonly string[], settings: CliSettings): Promise<CliRun> {
  return runCommand(addCommands, words, settings)
}

async function runCommand(
  add: (program: Command, context: ProgramContext) => void,
  words: readonly string[],
  settings: CliSettings,
): Promise<CliRun> {
  const { env = {}, directory = '/', stdin = '', now = Date.now } = settings
  let [stdout, stderr, code] = ['', '', 0]
  const program = new Command('penstock')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: text => {
        stdout += text
      },
      writeErr: text => {
        stderr += text
      },
    })
  const context = {
    print: (text: string) => {
      stdout += `${text}\n`
    },
    printError: (text: string) => {
      stderr += `${text}\n`
    },
    exit: (ended: number, error?: string) => {
      if (error !== undefined) stderr += `${error}\n`
      code = ended
    },
    write: async (content: string | Uint8Array) => {
      stdout += typeof content === 'string' ? content : Buffer.from(content).toString()
    },
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    env,
    directory,
    now,
  }
  const logger = pino({ level: 'silent' })
  add(program, {
    ...context,
    ...{ fetch, stderr: process.stderr, onStop() {}, environment: async () => env },
    withQueues: run => withQueues(parseConfig(queuesConfigSchema, env), logger, run),
    withClickHouse: run => withClickHouse(parseConfig(clickhouseConfigSchema, env), run),
    withBuckets: async (bucket, run) => withBuckets(parseConfig(installationConfigSchema, env), bucket, run),
    withInstallation: async (bucket, run) =>
      withInstallation(parseConfig(installationConfigSchema, env), bucket, logger, run),
    withBackups: run => withBackups(parseConfig(backupConfigSchema, env), logger, run),
    withDirectory: run => withDirectory(parseConfig(directoryConfigSchema, env), logger, run),
    withExamined: run => withExamined({ config: parseConfig(doctorConfigSchema, env), env }, logger, run),
    withStores: run => withStores(parseConfig(cliConfigSchema, env), logger, run),
  })
  await runProgram(program, words, context)
  return { code, stdout, stderr }
}
