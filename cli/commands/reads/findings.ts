import { type Command, Option } from 'commander'
import { z } from 'zod'
import { findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { FINDING_STATUSES } from '../../../schemas/http/findings/work.ts'
import type { ReadCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { parsedBy, rowOf } from '../../terminal.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from './access.ts'

const HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token' })}

Example:
  $ npm run cli -- findings --service shop --status regressed --text "cannot read"`

const WIDTHS = [30, 30, 10, 10, 20]
const MESSAGE_CHARACTERS = 100

const limitSchema = z
  .string()
  .regex(/^([1-9]\d?|100)$/, 'It must be a whole number from 1 to 100.')
  .transform(Number)

interface FindingsOptions extends ReadOptions {
  readonly service?: string
  readonly text?: string
  readonly status?: string
  readonly limit: number
}

/** Adds `findings`, which lists the findings that occurred last. */
export function addFindings(parent: Command, context: ReadCommandContext): void {
  parent
    .command('findings')
    .description('list the findings that occurred last')
    .option('--service <name>', 'only those of this service')
    .option('--text <text>', 'only those with this text in type or message')
    .addOption(new Option('--status <status>', 'only those with this status').choices(FINDING_STATUSES))
    .addOption(
      new Option('--limit <count>', 'how many, at most 100').argParser(parsedBy(limitSchema)).default(20, '20'),
    )
    .addOption(urlOption())
    .option('--json', 'print the findings as the API returns them, one a line')
    .addHelpText('after', HELP)
    .action(async (options: FindingsOptions) => {
      const { service, text, status, limit, json } = options
      const reader = await connectReader(context, options)
      const query = new URLSearchParams({ limit: String(limit) })
      if (service !== undefined) query.set('service', service)
      if (text !== undefined) query.set('q', text)
      if (status !== undefined) query.set('status', status)
      const page = await reader.get(`/v3/findings?${query}`, findingsPageSchema)
      if (!json) context.print(rowOf(['FINDING', 'LAST SEEN', 'STATUS', 'COUNT', 'SERVICE', 'WHAT'], WIDTHS))
      for (const finding of page?.findings ?? []) {
        const { id, lastSeenAt, occurrenceCount, serviceName, type, message } = finding
        const what = `${type}: ${message}`.slice(0, MESSAGE_CHARACTERS)
        const columns = [id, lastSeenAt, finding.status, String(occurrenceCount), serviceName, what]
        context.print(json ? JSON.stringify(finding) : rowOf(columns, WIDTHS))
      }
    })
}
