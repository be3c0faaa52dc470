import { type Command, Option } from 'commander'
import { z } from 'zod'
import { traceColumnsSchema, traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import type { ReadCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { describeCompleteness, drawTrace } from '../../reads/draw-trace.ts'
import { counted, parsedBy } from '../../terminal.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from './access.ts'

const HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token', [EXIT.notFound]: 'there is no such trace' })}

Example:
  $ npm run cli -- trace 5b8efff798038103d269b633813fc60c`

const idSchema = z
  .string()
  .toLowerCase()
  .refine(id => traceIdSchema.safeParse(id).success, 'It must have 32 hex digits.')
const spansSchema = z
  .string()
  .regex(/^[1-9]\d{0,6}$/, 'It must be a whole number from 1.')
  .transform(Number)

/** Adds `trace`, which shows a trace as a tree. */
export function addTrace(parent: Command, context: ReadCommandContext): void {
  const { print, printError, exit } = context
  parent
    .command('trace')
    .description('show a trace as a tree, and whether it is complete')
    .argument('<id>', 'the trace id', parsedBy(idSchema))
    .addOption(
      new Option('--spans <count>', 'how many spans to show').argParser(parsedBy(spansSchema)).default(200, '200'),
    )
    .addOption(urlOption())
    .option('--json', 'print the columns of the trace as the API returns them')
    .addHelpText('after', HELP)
    .action(async (traceId: string, options: ReadOptions & { spans: number }) => {
      const reader = await connectReader(context, options)
      const trace = await reader.get(`/v3/traces/${traceId}`, traceColumnsSchema)
      if (trace === undefined) {
        printError(`there is no trace ${traceId}, or it is no longer retained`)
        return exit(EXIT.notFound)
      }
      if (options.json) return print(JSON.stringify(trace))
      const { spanCount, wallDurationMs, services } = trace
      print(
        `trace ${traceId}: ${counted(spanCount, 'span')} of ${counted(services.length, 'service')} in ${wallDurationMs} ms`,
      )
      print(describeCompleteness(trace))
      for (const line of drawTrace(trace, options.spans)) print(line)
    })
}
