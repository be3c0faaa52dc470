import type { Command } from 'commander'
import { deleteRelease } from '../../shared/directory/delete-release.ts'
import { createReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { removeUploads } from '../../shared/queue/remove-uploads.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findWorkspace, WORKSPACE_OPTION } from '../find-workspace.ts'

const DELETE_HELP = `
Its manifest is no longer used, so new exceptions of this version keep their stack frames as they are. A version that is
registered again begins without maps. Workers delete the maps that no other release uses, a week later.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the release does not exist' })}

Example:
  $ npm run cli -- release delete --workspace acme --release rel_asikh4qmg7banudokni5oiju35`

interface ReleaseOptions {
  readonly workspace: string
  readonly release: string
  readonly json?: boolean
}

/** Adds `release delete`. */
export function addReleases(parent: Command, context: DirectoryCommandContext): void {
  const { print, exit, withDirectory } = context
  parent
    .command('release')
    .description('the releases of a workspace')
    .command('delete')
    .description('delete a release with its manifest and uploads')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--release <slug>', 'the release (rel_…)')
    .option('--json', 'print the deleted release as JSON')
    .addHelpText('after', DELETE_HELP)
    .action(({ workspace: slugOrId, release: slug, json }: ReleaseOptions) =>
      withDirectory(async ({ redis, store, withQueues }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace === undefined) return
        const outcome = await withQueues(queues => {
          const deps = {
            releases: createReleaseStore(redis),
            removeUploads: (release: ReleaseKey) => removeUploads(queues.common, release),
          }
          return deleteRelease(deps, workspace.id, slug)
        })
        if (outcome === 'absent') {
          return exit(EXIT.notFound, `there is no release ${JSON.stringify(slug)} in ${workspace.slug}`)
        }
        const text = `release ${slug} of ${workspace.slug}: deleted`
        print(json ? JSON.stringify({ slug, workspaceId: workspace.id }) : text)
      }),
    )
}
