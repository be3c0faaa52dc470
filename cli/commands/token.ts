import { type Command, Option } from 'commander'
import { signLocalSession } from '../../shared/ids/local-session-token.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { WORKSPACE_OPTION, withWorkspace } from '../find-workspace.ts'
import { localDirectory, readSigningKey } from '../local-environment.ts'
import { durationSchema, parsedBy, userIdOptionSchema } from '../terminal.ts'

const HELP = `
For an installation that "npm start" has created in this directory (LOCAL_DIR, else .local). The token is signed with
the key of that installation, so that its API accepts it. In other installations, tokens come from the identity
provider. Prints only the token to stdout.

${exitCodesHelp({ [EXIT.notFound]: 'there is no local installation here, or the workspace does not exist' })}

Example:
  $ TOKEN=$(npm run --silent cli -- token --workspace local --user user_local)
  $ curl -H "authorization: Bearer $TOKEN" http://127.0.0.1:4318/v3/findings`

interface TokenOptions {
  readonly workspace: string
  readonly user: string
  /** In seconds. */
  readonly expires: number
}

/** Adds `token`, which creates a session token for local use. */
export function addToken(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, exit, env, directory, now } = context
  parent
    .command('token')
    .description('create a session token for a local installation')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--user <id>', 'the user', parsedBy(userIdOptionSchema))
    .addOption(
      new Option('--expires <time>', 'its lifetime: 90s, 15m, 1h or 30d')
        .argParser(parsedBy(durationSchema))
        .default(3_600, '1h'),
    )
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, user: userId, expires }: TokenOptions) => {
      const privateKey = await readSigningKey(env, directory)
      if (privateKey === undefined) {
        return exit(
          EXIT.notFound,
          `there is no local installation in ${localDirectory(env, directory)}: create one with "npm start"`,
        )
      }
      await withWorkspace(context, slugOrId, async (workspace, store) => {
        if (!(await store.member(workspace.id, userId))) {
          const effect = 'the API will reject the token'
          printError(`note: ${JSON.stringify(userId)} is not a member of ${workspace.slug}: ${effect}`)
        }
        const issuedAt = Math.floor(now() / 1_000)
        const session = { privateKey, userId, org: workspace.slug, issuedAt, expiresAt: issuedAt + expires }
        print(await signLocalSession(session))
      })
    })
}
