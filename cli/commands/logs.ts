import { setTimeout as delay } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { type LogRecord, SEVERITY_LEVELS } from '../../schemas/http/logs.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, ApiRefusal, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { followLogs, readLogs } from '../reads/log-follower.ts'
import { parsedBy, rowOf } from '../terminal.ts'

const HELP = `
Without --follow, the command prints the newest records, the oldest of them first. Unless --from, --to or --trace is given, these are
records of the last hour.

With --follow, it then prints each record once that meets the conditions and arrives after that, until Ctrl-C or until the reader of
its output leaves. Records are ordered by their time within what arrives together, and printed as soon as they are stored. Each poll
begins where the watermark of the poll before it was, less 30 seconds: none is missed or repeated while the clocks of the servers
differ by less. A record is not shown if its own time is more than an hour before, or five minutes after its arrival, unless --trace is
given. While the API is unavailable, it waits and continues where it was.
${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token' })}

Examples:
  $ npm run cli -- logs --service shop --severity ERROR --from 2026-11-21T10:00:00Z
  $ npm run cli -- logs --service shop --follow --json | jq .body`

const POLL_MS = 1_000
/** Delay after a failed poll. */
const RETRY_MS = 5_000
const WIDTHS = [30, 5, 16]

const limitSchema = z
  .string()
  .regex(/^([1-9]\d{0,3}|10000)$/, 'It must be a whole number from 1 to 10000.')
  .transform(Number)

/** Options that are conditions of GET /v3/logs, with their parameters. */
const PARAMETERS = {
  trace: 'trace',
  span: 'span',
  session: 'session',
  service: 'service',
  severity: 'severity',
  text: 'q',
  attribute: 'attribute',
  from: 'from',
  to: 'to',
} as const

type LogsOptions = ReadOptions &
  Partial<Record<keyof typeof PARAMETERS, string>> & { readonly limit: number; readonly follow?: boolean }

/** Adds `logs`, which prints log records, and those that arrive. */
export function addLogs(parent: Command, context: ReadCommandContext): void {
  parent
    .command('logs')
    .description('print log records, the newest last, and follow those that arrive')
    .option('--service <name>', 'only those of this service')
    .addOption(new Option('--severity <level>', 'only those of this severity or a higher one').choices(SEVERITY_LEVELS))
    .option('--text <words>', 'only those whose body has all of these words')
    .option('--attribute <key=value>', 'only those with this attribute')
    .option('--trace <id>', 'only those of this trace')
    .option('--span <id>', 'only those of this span')
    .option('--session <id>', 'only those of this session')
    .addOption(new Option('--from <time>', 'only those of this time or later, in RFC 3339').conflicts('follow'))
    .addOption(new Option('--to <time>', 'only those before this time, in RFC 3339').conflicts('follow'))
    .addOption(
      new Option('--limit <count>', 'how many of the newest, at most 10000')
        .argParser(parsedBy(limitSchema))
        .default(100, '100'),
    )
    .option('-f, --follow', 'continue with those that arrive')
    .addOption(urlOption())
    .option('--json', 'print the records as the API returns them, one a line')
    .addHelpText('after', HELP)
    .action((options: LogsOptions) => printLogs(context, options))
}

async function printLogs(context: ReadCommandContext, options: LogsOptions): Promise<void> {
  const reader = await connectReader(context, options)
  const stopping = new AbortController()
  const { signal } = stopping
  context.onStop(() => stopping.abort())
  const conditions = new URLSearchParams()
  for (const [option, parameter] of Object.entries(PARAMETERS)) {
    const value = options[option as keyof typeof PARAMETERS]
    if (value !== undefined) conditions.set(parameter, value)
  }
  const print = async (records: readonly LogRecord[]) => {
    for (const record of records) await context.write(`${options.json ? JSON.stringify(record) : lineOf(record)}\n`)
  }
  try {
    if (!options.follow) return await print(await readLogs(reader, conditions, options.limit, signal))
    const follower = followLogs(reader, conditions, signal)
    await print(await follower.begin(options.limit))
    for (;;) {
      const arrived = await unlessTemporary(context, () => follower.next(), signal)
      await print(arrived ?? [])
      await delay(arrived === undefined ? RETRY_MS : POLL_MS, undefined, { signal })
    }
  } catch (error) {
    // Ctrl-C is the way to end it.
    if (!signal.aborted) throw error
  }
}

/** Returns undefined, and prints the reason to stderr, if the API is unavailable or has too much to do. */
async function unlessTemporary<T>(
  { printError }: Pick<ReadCommandContext, 'printError'>,
  read: () => Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    const isFinal =
      error instanceof ApiRefusal ? error.status !== 429 && error.status < 500 : error instanceof z.ZodError
    if (isFinal || signal.aborted) throw error
    printError(`${describeError(error)}: trying again in ${RETRY_MS / 1_000} s`)
    return undefined
  }
}

function lineOf({ timestamp, severity, serviceName, body }: LogRecord): string {
  return rowOf([timestamp, severity === 'UNSPECIFIED' ? '-' : severity, serviceName || '-', body], WIDTHS)
}
