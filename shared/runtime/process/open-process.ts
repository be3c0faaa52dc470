import { hostname } from 'node:os'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { z } from 'zod'
import { answerVersion, BUILD } from '../build-info.ts'
import { ConfigError, EXIT_USAGE, parseConfig, type processSettings } from '../config.ts'
import { createLogger, type Logger } from '../logger.ts'
import type { Environment } from '../secret-files.ts'

type Schema = z.ZodObject<Pick<typeof processSettings, 'LOG_LEVEL'>>
type Values<O extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: O }>>['values']

/** What a process is, and takes. */
interface ProcessForm<S extends Schema, O extends ParseArgsOptionsConfig> {
  /** Its name in log lines. */
  readonly name: string
  readonly schema: S
  readonly env: Environment
  /** One line: its command with its options. */
  readonly usage: string
  readonly options?: O
  /** Returns what is wrong with the values of options, if anything is. */
  readonly faultOf?: (values: Values<O>) => string | undefined
}

/** A process whose arguments and environment are valid. */
interface OpenProcess<S extends Schema, O extends ParseArgsOptionsConfig> {
  readonly config: Readonly<z.infer<S>>
  readonly values: Values<O>
  readonly logger: Logger
}

/**
 * Begins a process: reads its arguments and its environment, and logs its version. `--version` and `--help` are answered.
 * Invalid arguments end it with one line and the usage on stderr, an invalid environment with one line of the log; the exit code
 * is 2 in both cases.
 */
export function openProcess<S extends Schema, const O extends ParseArgsOptionsConfig = Record<never, never>>({
  name,
  schema,
  env,
  usage,
  options = {} as O,
  faultOf = () => undefined,
}: ProcessForm<S, O>): OpenProcess<S, O> {
  const values = readArguments(usage, options, faultOf)
  const config = readEnvironment(name, schema, env)
  const logger = createLogger(name, config.LOG_LEVEL)
  logger.info({ ...BUILD, node: process.version, pid: process.pid, host: hostname() }, 'starting')
  return { config, values, logger }
}

function readArguments<O extends ParseArgsOptionsConfig>(
  usage: string,
  options: O,
  faultOf: (values: Values<O>) => string | undefined,
): Values<O> {
  answerVersion()
  if (process.argv.includes('--help')) {
    process.stdout.write(`usage: ${usage}\n`)
    process.exit(0)
  }
  try {
    const { values } = parseArgs({ options })
    const fault = faultOf(values)
    if (fault === undefined) return values
    return refuse(fault, usage)
  } catch (error) {
    // Node adds advice about arguments that begin with a dash.
    return refuse(String((error as Error).message).split('. ', 1)[0] ?? '', usage)
  }
}

function readEnvironment<S extends Schema>(name: string, schema: S, env: Environment): Readonly<z.infer<S>> {
  try {
    return parseConfig(schema, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    createLogger(name, 'fatal').fatal(error.message)
    process.exit(EXIT_USAGE)
  }
}

function refuse(fault: string, usage: string): never {
  process.stderr.write(`${fault}\nusage: ${usage}\n`)
  process.exit(EXIT_USAGE)
}
