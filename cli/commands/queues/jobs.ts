import { type Command, Option } from 'commander'
import { z } from 'zod'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { readReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import type { Queues } from '../../../shared/queue/queues.ts'
import type { CommandOutput, DirectoryCommandContext, QueuesCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { type Change, changeJobs, removeJob, retryJob, setJobAside } from '../../queues/change-jobs.ts'
import { type DescribedJob, describeJob, findJobs, JOB_STATES, type JobState, lanesIn } from '../../queues/find-jobs.ts'
import { counted, limitSchema, parsedBy, printable, printList } from '../../terminal.ts'
import { QUEUE_ARGUMENT } from './pause.ts'

/** Adds `queues jobs`, `retry`, `to-dead-letters` and `remove`. */
export function addJobCommands(parent: Command, context: QueuesCommandContext & DirectoryCommandContext): void {
  addJobs(parent, context)
  addRetry(parent, context)
  addToDeadLetters(parent, context)
  addRemove(parent, context)
}

const JOBS_HELP = `
A job refers to a payload, which has one or more accepted requests. States:
  stuck    a worker has taken it and ended: the next check of a worker gives it to another
  failed   it is not repeated. A job of the service always is, so something else has added it
  delayed  an attempt has failed, and the next one follows
  active   a worker has it in progress
  waiting  no worker has taken it

${exitCodesHelp({ [EXIT.failed]: 'the directory or the Redis of the queues is unavailable' })}

Examples:
  $ npm run cli -- queues jobs traces
  $ npm run cli -- queues jobs traces --state failed --limit 1000 --json`

interface JobsOptions {
  readonly state?: JobState
  readonly limit: number
  readonly json?: boolean
}

/** Adds `queues jobs`. */
function addJobs(parent: Command, { withDirectory, print, now }: DirectoryCommandContext): void {
  parent
    .command('jobs')
    .description('list the jobs of a queue, those first that may need a hand')
    .argument(...QUEUE_ARGUMENT)
    .addOption(new Option('--state <state>', 'jobs in this state').choices(JOB_STATES))
    .option('--limit <count>', 'the maximum number of jobs', parsedBy(limitSchema), 50)
    .option('--json', 'print each job as a line of JSON')
    .addHelpText('after', JOBS_HELP)
    .action((name: QueueName, { state, limit, json }: JobsOptions) =>
      withDirectory(({ redis, withQueues }) =>
        withQueues(async queues => {
          const secret = await readReceiptSecret(redis)
          await printList({ print, json }, LISTING, describeJobs(queues, { name, state, limit, secret, now: now() }))
        }),
      ),
    )
}

/** Jobs that are read at the same time, each with a payload of up to 4 MiB. */
const READ_TOGETHER = 16

interface Asked {
  readonly name: QueueName
  readonly state: JobState | undefined
  readonly limit: number
  readonly secret: Buffer | undefined
  readonly now: number
}

async function* describeJobs(queues: Queues, { name, state, limit, secret, now }: Asked): AsyncGenerator<DescribedJob> {
  const lanes = lanesIn((await queues.read()).of(name))
  let left = limit
  for (const wanted of state === undefined ? JOB_STATES : [state]) {
    const places = (await findJobs(lanes, wanted, left)).slice(0, left)
    for (let i = 0; i < places.length; i += READ_TOGETHER) {
      const together = places.slice(i, i + READ_TOGETHER)
      const described = await Promise.all(together.map(place => describeJob(place, secret, now)))
      yield* described.filter(job => job !== undefined)
    }
    left -= places.length
    if (left === 0) return
  }
}

const LISTING = {
  columns: { ID: 36, STATE: 8, AGE: 10, ATTEMPTS: 8, PAYLOAD: 14, SURFACE: 24, REASON: 0 },
  cells: ({ id, state, ageSeconds, attempts, hasPayload, requests, surfaceId, reason, setAside }: DescribedJob) => [
    id,
    state,
    `${ageSeconds} s`,
    `${attempts}`,
    requests === undefined ? (hasPayload ? 'yes' : 'none') : counted(requests, 'request'),
    surfaceId ?? '',
    setAside === undefined ? reason : `becomes a dead letter: ${setAside}`,
  ],
  shown: (job: DescribedJob) => job,
}

const JOBS_ARGUMENT = ['[job...]', 'the jobs, by id'] as const

interface ChangeOptions {
  readonly allFailed?: boolean
  readonly json?: boolean
}

const CHANGE_CODES = {
  [EXIT.failed]: 'the Redis of the queues is unavailable: run the command again',
  [EXIT.notFound]: 'there is no such job; the others were changed',
  [EXIT.conflict]: 'some jobs were left as they are; each has a line with the reason',
}

const RETRY_HELP = `
Failed jobs, those that wait for their next attempt and stuck ones. A stuck job is retried by itself while a worker runs.

${exitCodesHelp(CHANGE_CODES)}

Examples:
  $ npm run cli -- queues retry traces 019e4c1c-7d5e-7001-8f5e-2b8d6b0c8f1a
  $ npm run cli -- queues retry traces --all-failed`

/** Adds `queues retry`. */
function addRetry(parent: Command, context: QueuesCommandContext): void {
  parent
    .command('retry')
    .description('have a worker take jobs next')
    .argument(...QUEUE_ARGUMENT)
    .argument(...JOBS_ARGUMENT)
    .option('--all-failed', 'all failed jobs of the queue')
    .option('--json', 'print each job as a line of JSON')
    .addHelpText('after', RETRY_HELP)
    .action((name: QueueName, ids: string[], options: ChangeOptions) =>
      change(context, { name, ids, options, apply: retryJob }),
    )
}

const TO_DEAD_LETTERS_HELP = `
The worker that takes a job next makes a dead letter of each of its requests, without decoding them, and writes log and
receipts as for any refused request. Until then the job keeps its payload. Bounds of dead letters do not apply. "dead-letters
replay" stores them, except those of source-maps, completions and symbolication (docs/api/dead-letters.md#replay-letters).

${exitCodesHelp(CHANGE_CODES)}

Example:
  $ npm run cli -- queues to-dead-letters traces 019e4c1c-7d5e-7001-8f5e-2b8d6b0c8f1a --reason 'ends its worker'`

const reasonSchema = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,200}$/u, 'It must have 1 to 200 characters and no control characters.')

/** Adds `queues to-dead-letters`. */
function addToDeadLetters(parent: Command, context: QueuesCommandContext): void {
  parent
    .command('to-dead-letters')
    .description('make dead letters of the requests of jobs')
    .argument(...QUEUE_ARGUMENT)
    .argument('<job...>', 'the jobs, by id')
    .option('--reason <text>', 'why; receipts show it to clients', parsedBy(reasonSchema), 'by an operator')
    .option('--json', 'print each job as a line of JSON')
    .addHelpText('after', TO_DEAD_LETTERS_HELP)
    .action((name: QueueName, ids: string[], { reason, ...options }: ChangeOptions & { readonly reason: string }) =>
      change(context, { name, ids, options, apply: setJobAside(reason) }),
    )
}

const REMOVE_HELP = `
A job that has a payload is never removed, because its requests were accepted. "queues to-dead-letters" keeps them.

${exitCodesHelp(CHANGE_CODES)}

Examples:
  $ npm run cli -- queues remove traces 4711
  $ npm run cli -- queues remove traces --all-failed`

/** Adds `queues remove`. */
function addRemove(parent: Command, context: QueuesCommandContext): void {
  parent
    .command('remove')
    .description('remove jobs that have no payload')
    .argument(...QUEUE_ARGUMENT)
    .argument(...JOBS_ARGUMENT)
    .option('--all-failed', 'all failed jobs of the queue without a payload')
    .option('--json', 'print each job as a line of JSON')
    .addHelpText('after', REMOVE_HELP)
    .action((name: QueueName, ids: string[], options: ChangeOptions) =>
      change(context, { name, ids, options, apply: removeJob }),
    )
}

interface WantedChange {
  readonly name: QueueName
  readonly ids: readonly string[]
  readonly options: ChangeOptions
  readonly apply: Parameters<typeof changeJobs>[2]
}

async function change(
  { withQueues, print, printError, exit }: QueuesCommandContext,
  { name, ids, options: { allFailed = false, json = false }, apply }: WantedChange,
): Promise<void> {
  if (allFailed === ids.length > 0) return exit(EXIT.usage, 'name jobs, or all of them with --all-failed')
  await withQueues(async queues => {
    const lanes = lanesIn((await queues.read()).of(name))
    const failed = allFailed ? await findJobs(lanes, 'failed', Number.MAX_SAFE_INTEGER) : []
    const changes = await changeJobs(lanes, allFailed ? failed.map(({ id }) => id) : ids, apply)
    report({ print, printError, exit }, changes, json)
  })
}

/** Prints each job that was named, and those that were left as they are on stderr. */
function report({ print, printError, exit }: CommandOutput, changes: readonly Change[], json: boolean): void {
  for (const { id, outcome, text } of changes) {
    if (json) print(JSON.stringify({ id, outcome, text }))
    else if (outcome === 'done') print(printable(`${id}: ${text}`))
    else printError(printable(`${id}: ${text}`))
  }
  const left = (outcome: Change['outcome']) => changes.some(change => change.outcome === outcome)
  if (left('refused')) exit(EXIT.conflict)
  else if (left('not_found')) exit(EXIT.notFound)
}
