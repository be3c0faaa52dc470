import type { Command } from 'commander'
import { type Pipeline, pipelineSchema } from '../../../schemas/http/pipeline.ts'
import type { ReadCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { counted, rowOf } from '../../terminal.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from './access.ts'

const HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token' })}

Example:
  $ npm run cli -- pipeline`

const WIDTHS = [17, 8, 14, 10, 10]

/** Adds `pipeline`, which shows the unfinished requests of a workspace, and what was refused in the last 24 hours. */
export function addPipeline(parent: Command, context: ReadCommandContext): void {
  parent
    .command('pipeline')
    .description('show what waits to be stored, and what was refused in the last 24 hours')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', HELP)
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const pipeline = await reader.get('/v3/pipeline', pipelineSchema)
      if (pipeline === undefined) throw new Error('there is no such workspace')
      for (const line of options.json ? [JSON.stringify(pipeline)] : linesOf(pipeline)) context.print(line)
    })
}

function linesOf({ queues, history, unavailable }: Pipeline): string[] {
  const lines = [rowOf(['QUEUE', 'WAITING', 'WORK IN BYTES', 'OLDEST', 'REQUESTS'], WIDTHS)]
  for (const { queue, kind, requests, workBytes, oldestAgeSeconds } of queues) {
    const rate = history?.rates.find(counts => counts.kind === kind)
    if (workBytes === 0 && !requests && requests !== null && rate === undefined) continue
    const processed = rate === undefined ? '' : String(rate.requests.reduce((sum, count) => sum + count, 0))
    const age = `${oldestAgeSeconds.toFixed(1)} s`
    lines.push(rowOf([queue, requests == null ? '' : String(requests), String(workBytes), age, processed], WIDTHS))
  }
  for (const { kind, status, requests } of history?.refused ?? []) {
    lines.push(`refused with ${status}: ${counted(requests, 'request')} of ${kind}`)
  }
  for (const { reason, dead, replayed, discarded } of history?.letters ?? []) {
    lines.push(`${reason}: ${counted(dead, 'dead letter')}, ${replayed} replayed, ${discarded} discarded`)
  }
  return unavailable === null ? lines : [...lines, unavailable]
}
