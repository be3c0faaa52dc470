import type { Command } from 'commander'
import { acceptLosses } from '../../../shared/installation/queue-losses.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'

const HELP = `
After the Redis of the queues has lost its data, watermarks stop at the time before which everything was settled, for a day at
most, and the alert PenstockQueueStoreLost fires. Accept the loss once clients have sent again what they can
(docs/operate/lost-queues.md): watermarks move on, and the alert ends. Receipts and the audit still show what was lost.

${exitCodesHelp({ [EXIT.failed]: 'a Redis is unavailable: run the command again' })}

Example:
  $ npm run cli -- queues accept-loss`

/** Adds `queues accept-loss`. */
export function addAcceptLoss(parent: Command, { withDirectory, print }: DirectoryCommandContext): void {
  parent
    .command('accept-loss')
    .description('let watermarks move on after the Redis of the queues has lost its data')
    .addHelpText('after', HELP)
    .action(() =>
      withDirectory(async ({ redis, withQueues }) => {
        const losses = await withQueues(queues => acceptLosses({ directory: redis, queues }))
        for (const { seenAtMs, foundAtMs } of losses) {
          const [seen, found] = [seenAtMs, foundAtMs].map(atMs => new Date(atMs).toISOString())
          print(`accepted: the data of the queues was lost between ${seen} and ${found}`)
        }
        if (losses.length === 0) print('there is no loss to accept')
      }),
    )
}
