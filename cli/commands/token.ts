import { type Command, Option } from 'commander'
import { z } from 'zod'
import { userIdSchema } from '../../schemas/records/directory.ts'
import { signLocalSession } from '../../shared/ids/local-session-token.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { localDirectory, readSigningKey } from '../local-environment.ts'
import { durationSchema, parsedBy } from '../terminal.ts'

const HELP = `
For an installation that "npm start" has made in this directory (LOCAL_DIR, else .local): its key signs the token, and its
API accepts it. Elsewhere tokens come from the identity provider. Prints the token, and nothing else, to stdout.

Exit codes:
  0  done
  1  the directory could not be used
  2  the arguments or the environment are wrong
  3  there is no local installation here, or no such workspace

Example:
  $ TOKEN=$(npm run --silent cli -- token --workspace local --user user_local)
  $ curl -H "authorization: Bearer $TOKEN" http://127.0.0.1:4318/v3/findings`

const USER_RULE = 'It has 1 to 200 characters, and no control characters.'
const userSchema = z.string().refine(text => userIdSchema.safeParse(text).success, USER_RULE)

interface Asked {
  readonly workspace: string
  readonly user: string
  /** In seconds. */
  readonly expires: number
}

/** `token`: a session token for local use. */
export function addToken(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit, env, directory, now } = context
  parent
    .command('token')
    .description('make a session token for a local installation')
    .requiredOption('--workspace <slug or id>', 'the workspace that the token is for')
    .requiredOption('--user <id>', 'the user that the token is for', parsedBy(userSchema))
    .addOption(
      new Option('--expires <time>', 'how long it is good: 90s, 15m, 1h, 30d')
        .argParser(parsedBy(durationSchema))
        .default(3_600, '1h'),
    )
    .addHelpText('after', HELP)
    .action(async ({ workspace: name, user: userId, expires }: Asked) => {
      const privateKey = await readSigningKey(env, directory)
      if (privateKey === undefined) {
        printError(`there is no local installation in ${localDirectory(env, directory)}: "npm start" makes one`)
        return exit(EXIT.notFound)
      }
      await withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        if (!(await store.member(workspace.id, userId))) {
          printError(
            `note: ${JSON.stringify(userId)} is no member of ${workspace.slug}, and is answered as a stranger is`,
          )
        }
        const issuedAt = Math.floor(now() / 1_000)
        const session = { privateKey, userId, org: workspace.slug, issuedAt, expiresAt: issuedAt + expires }
        print(await signLocalSession(session))
      })
    })
}
