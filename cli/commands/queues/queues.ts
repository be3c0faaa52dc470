import type { Command } from 'commander'
import type { DirectoryCommandContext, QueuesCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { type QueueRow, readQueueRows } from '../../queues/queue-rows.ts'
import { printList } from '../../terminal.ts'
import { addAcceptLoss } from './accept-loss.ts'
import { addJobCommands } from './jobs.ts'
import { addPause, addResume } from './pause.ts'

const HELP = `
A queue has requests that are accepted and not yet stored. OLDEST is the age of the first of them, COST their estimated
work in decoded bytes, BUSY how many of its workers have work all the time. Failed jobs are not repeated. Stuck jobs were
taken by a worker that has ended: the next check of a worker gives them to another. The last column has what needs a hand.

${exitCodesHelp({ [EXIT.failed]: 'the Redis of the queues is unavailable' })}

Examples:
  $ npm run cli -- queues
  $ npm run cli -- queues pause traces
  $ npm run cli -- queues jobs traces --state failed`

/** Adds `queues`, which shows the queues, and the commands that change them. */
export function addQueues(parent: Command, context: QueuesCommandContext & DirectoryCommandContext): void {
  const command = parent
    .command('queues')
    .description('show the queues, and the jobs in them')
    // After the name of a command, --json is an option of that command.
    .enablePositionalOptions()
    .option('--json', 'print each queue as a line of JSON')
    .addHelpText('after', HELP)
    .action(({ json }: { json?: boolean }) =>
      context.withQueues(async queues =>
        printList({ print: context.print, json }, LISTING, await readQueueRows(queues)),
      ),
    )
  addPause(command, context)
  addResume(command, context)
  addJobCommands(command, context)
  addAcceptLoss(command, context)
}

const COLUMNS = {
  QUEUE: 18,
  PARTITIONS: 10,
  REQUESTS: 10,
  COST: 14,
  OLDEST: 10,
  WORKERS: 7,
  BUSY: 6,
  FAILED: 6,
  STUCK: 6,
  '': 0,
}

const LISTING = {
  columns: COLUMNS,
  cells: (row: QueueRow) => [
    row.queue,
    `${row.partitions}`,
    `${row.requests}`,
    `${row.costBytes}`,
    `${row.oldestSeconds} s`,
    `${row.workers}`,
    row.busyWorkers.toFixed(1),
    `${row.failedJobs}`,
    `${row.stuckJobs}`,
    row.notes.join(', '),
  ],
  shown: (row: QueueRow) => row,
}
