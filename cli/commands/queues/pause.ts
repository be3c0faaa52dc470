import type { Command } from 'commander'
import { type QueueName, queueNameSchema } from '../../../schemas/queues/names.ts'
import type { QueuesCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { lanesIn, openBull } from '../../queues/find-jobs.ts'
import { parsedBy } from '../../terminal.ts'

/** Declares the argument that names a queue. */
export const QUEUE_ARGUMENT = ['<queue>', 'the queue, such as traces', parsedBy(queueNameSchema)] as const

const PAUSE_HELP = `
Workers finish the jobs that they have taken, and take no more of this queue, also after they are restarted. Requests are
accepted until the queue is full (QUEUE_MAX_COST), then answered 429. Nothing is lost. Watermarks of the kinds that pass
through the queue stand still. A partition that is added later is not paused: run the command again.

${exitCodesHelp({ [EXIT.failed]: 'the Redis of the queues is unavailable: run the command again' })}

Example:
  $ npm run cli -- queues pause traces`

/** Adds `queues pause`. */
export function addPause(parent: Command, context: QueuesCommandContext): void {
  parent
    .command('pause')
    .description('have workers take no more jobs of a queue')
    .argument(...QUEUE_ARGUMENT)
    .addHelpText('after', PAUSE_HELP)
    .action((name: QueueName) => setPaused(context, name, true))
}

const RESUME_HELP = `
${exitCodesHelp({ [EXIT.failed]: 'the Redis of the queues is unavailable: run the command again' })}

Example:
  $ npm run cli -- queues resume traces`

/** Adds `queues resume`. */
export function addResume(parent: Command, context: QueuesCommandContext): void {
  parent
    .command('resume')
    .description('have workers take the jobs of a paused queue again')
    .argument(...QUEUE_ARGUMENT)
    .addHelpText('after', RESUME_HELP)
    .action((name: QueueName) => setPaused(context, name, false))
}

/** Pauses or resumes each lane of each partition. Repeating it changes nothing. */
function setPaused({ withQueues, print }: QueuesCommandContext, name: QueueName, paused: boolean): Promise<void> {
  return withQueues(async queues => {
    for (const lane of lanesIn((await queues.read()).of(name))) {
      const bull = openBull(lane)
      await (paused ? bull.pause() : bull.resume()).finally(() => bull.close())
    }
    print(paused ? `${name} is paused: workers take no more jobs of it` : `${name} is resumed`)
  })
}
