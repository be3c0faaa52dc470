import type { Command } from 'commander'
import { LetterClaims } from '../../../letters/letter-claims.ts'
import { ReplayJobs } from '../../../letters/replay-jobs.ts'
import type { Workspace } from '../../../schemas/records/directory.ts'
import type { StoresCommandContext } from '../../command-context.ts'
import { findWorkspace } from '../../find-workspace.ts'
import { addList } from './list.ts'
import { addPurge } from './purge.ts'
import { addReplay } from './replay.ts'
import { addShow } from './show.ts'
import type { LetterStores } from './stores.ts'

/** Adds `dead-letters list`, `show`, `replay` and `purge`. */
export function addDeadLetters(parent: Command, context: StoresCommandContext): void {
  const command = parent.command('dead-letters').description('the requests of a workspace that could not be stored')
  const withLetters = (slugOrId: string, run: (stores: LetterStores, workspace: Workspace) => Promise<void>) =>
    context.withStores(async ({ store, clickhouse, objects, withQueues, retentionDays }) => {
      const workspace = await findWorkspace(store, slugOrId, context)
      if (workspace === undefined) return
      await withQueues(async queues => {
        const jobs = new ReplayJobs(queues)
        const claims = new LetterClaims(queues, retentionDays)
        try {
          await run({ clickhouse, objects, claims, jobs, now: Date.now }, workspace)
        } finally {
          await jobs.close()
        }
      })
    })
  addList(command, context, withLetters)
  addShow(command, context, withLetters)
  addReplay(command, context, withLetters)
  addPurge(command, context, withLetters)
}
