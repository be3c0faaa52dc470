import type { Command } from 'commander'
import { ADMITTED_QUEUES, type AdmittedQueue } from '../../../schemas/queues/names.ts'
import { readOldestWatermarks, readWatermarks } from '../../../shared/queue/watermark.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { findWorkspace } from '../../find-workspace.ts'
import { printList } from '../../terminal.ts'

const HELP = `
Everything of a kind that was accepted before its watermark is settled: stored, a dead letter, or discarded. Without --surface,
of all surfaces together. Times are those of the clock of Redis.

${exitCodesHelp({
  [EXIT.failed]: 'the directory or the Redis of the queues is unavailable',
  [EXIT.notFound]: 'the workspace or the surface does not exist',
})}

Examples:
  $ npm run cli -- watermarks
  $ npm run cli -- watermarks --workspace acme --surface srf_5f2c1d0a9b8e7f6a5c4d`

interface WatermarksOptions {
  readonly workspace?: string
  readonly surface?: string
  readonly json?: boolean
}

interface Watermark {
  readonly kind: AdmittedQueue
  readonly settledBefore: string
  readonly lagSeconds: number
}

const LISTING = {
  columns: { KIND: 16, 'SETTLED BEFORE': 26, LAG: 0 },
  cells: ({ kind, settledBefore, lagSeconds }: Watermark) => [kind, settledBefore, `${lagSeconds} s`],
  shown: (watermark: Watermark) => watermark,
}

/** Adds `watermarks`. */
export function addWatermarks(parent: Command, context: DirectoryCommandContext): void {
  const { withDirectory, print, exit } = context
  parent
    .command('watermarks')
    .description('show up to which time everything is settled')
    .option('--workspace <slug or id>', 'the workspace of the surface')
    .option('--surface <id>', 'only this surface (srf_…)')
    .option('--json', 'print each watermark as a line of JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, surface: surfaceId, json }: WatermarksOptions) => {
      if ((slugOrId === undefined) !== (surfaceId === undefined)) {
        return exit(EXIT.usage, 'pass both --workspace and --surface, or neither')
      }
      await withDirectory(async ({ store, withQueues }) => {
        const show = async (read: { readAtMs: number; settledBeforeMs: Readonly<Record<AdmittedQueue, number>> }) => {
          const watermarks = ADMITTED_QUEUES.map((kind): Watermark => {
            const settledMs = read.settledBeforeMs[kind]
            const lagSeconds = Math.max(0, Math.round((read.readAtMs - settledMs) / 1_000))
            return { kind, settledBefore: new Date(settledMs).toISOString(), lagSeconds }
          })
          await printList({ print, json }, LISTING, watermarks)
        }
        if (slugOrId === undefined || surfaceId === undefined) {
          return show(await withQueues(queues => readOldestWatermarks(queues)))
        }
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace === undefined) return
        if (!(await store.surfaceIds(workspace.id)).includes(surfaceId)) {
          return exit(EXIT.notFound, `there is no surface ${JSON.stringify(surfaceId)} in ${workspace.slug}`)
        }
        const surface = { workspaceId: workspace.id, surfaceId }
        const { readAtMs, surfaces } = await withQueues(queues => readWatermarks(queues, [surface]))
        const [marks] = surfaces
        if (marks !== undefined) await show({ readAtMs, settledBeforeMs: marks.settledBeforeMs })
      })
    })
}
