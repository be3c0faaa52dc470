import { Readable } from 'node:stream'
import { Command } from 'commander'
import { pino } from 'pino'
import { backupConfigSchema, directoryConfigSchema, installationConfigSchema } from '../../../cli/config.ts'
import { withBackups, withBuckets, withDirectory, withInstallation } from '../../../cli/connect.ts'
import { addDirectoryCommands, runProgram } from '../../../cli/program.ts'
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
export async function runDirectoryCli(words: readonly string[], settings: CliSettings): Promise<CliRun> {
  const { env = {}, directory = '/', stdin = '', now = Date.now } = settings
  let [stdout, stderr, code] = ['', '', 0]
  const program = new Command('penstock').exitOverride().configureOutput({
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
    write: async (text: string) => {
      stdout += text
    },
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    env,
    directory,
    now,
  }
  const logger = pino({ level: 'silent' })
  addDirectoryCommands(program, {
    ...context,
    withBuckets: async (bucket, run) => withBuckets(parseConfig(installationConfigSchema, env), bucket, run),
    withInstallation: async (bucket, run) =>
      withInstallation(parseConfig(installationConfigSchema, env), bucket, logger, run),
    withBackups: run => withBackups(parseConfig(backupConfigSchema, env), logger, run),
    withDirectory: run => withDirectory(parseConfig(directoryConfigSchema, env), logger, run),
  })
  await runProgram(program, words, context)
  return { code, stdout, stderr }
}
