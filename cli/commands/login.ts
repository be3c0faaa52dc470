import { type Command, Option } from 'commander'
import { z } from 'zod'
import { ConfigError } from '../../shared/runtime/config.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findLocalApi } from '../local-environment.ts'
import { plainUrl, urlOption } from '../reads/api-reader.ts'
import { forgetSession, keepSession, readSessions, sessionsPath } from '../sign-in/kept-sessions.ts'
import { parsedBy } from '../terminal.ts'

const LOGIN_HELP = `
Prints an address. Sign in there with a browser of this machine, and the commands that read from this installation act as you
until you sign out. PENSTOCK_TOKEN has precedence. Tokens are kept in the folder of your settings, in a file that only you may
read. The identity provider must allow the client of the console http://127.0.0.1:<port>/callback; --port is for providers that
want to know the port.

${exitCodesHelp({ [EXIT.failed]: 'the installation offers no sign-in, or the sign-in failed' })}

Example:
  $ npm run cli -- login --url https://penstock.example`

const portSchema = z
  .string()
  .regex(/^\d{1,5}$/, 'It must be a port.')
  .transform(Number)

interface LoginOptions {
  readonly url?: string
  readonly port: number
}

/** Adds `login`, which signs a user in for the commands that read. */
export function addLogin(parent: Command, context: ReadCommandContext): void {
  const { print, env, fetch, onStop } = context
  parent
    .command('login')
    .description('sign in with a browser, for the commands that read')
    .addOption(urlOption())
    .addOption(
      new Option('--port <port>', 'the port at which to wait').argParser(parsedBy(portSchema)).default(0, 'any'),
    )
    .addHelpText('after', LOGIN_HELP)
    .action(async ({ url: given, port }: LoginOptions) => {
      const url = await installationOf(context, given)
      const { signIn } = await import('../sign-in/sign-in.ts')
      const stop = new AbortController()
      onStop(() => stop.abort())
      const show = (address: string) => print(`Sign in at:\n  ${address}`)
      const session = await signIn({ fetch, now: Date.now, show, stopped: stop.signal }, url, port)
      await keepSession(env, session)
      print(`You are signed in at ${url}. Tokens are in ${sessionsPath(env)}.`)
    })
}

const LOGOUT_HELP = `
Removes the tokens of an installation, and revokes them where its identity provider can.

${exitCodesHelp({ [EXIT.notFound]: 'you are not signed in there' })}

Example:
  $ npm run cli -- logout --url https://penstock.example`

/** Adds `logout`, which ends a sign-in. */
export function addLogout(parent: Command, context: ReadCommandContext): void {
  const { print, printError, exit, env, fetch } = context
  parent
    .command('logout')
    .description('sign out')
    .addOption(urlOption())
    .addHelpText('after', LOGOUT_HELP)
    .action(async ({ url: given }: Pick<LoginOptions, 'url'>) => {
      const sessions = await readSessions(env)
      const named = given ?? env.PENSTOCK_URL
      const session = named === undefined ? sessions[0] : sessions.find(({ url }) => url === plainUrl(named))
      if (session === undefined) return exit(EXIT.notFound, 'you are not signed in')
      await forgetSession(env, session.url)
      const { revokeSession } = await import('../sign-in/sign-in.ts')
      await revokeSession({ fetch }, session).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error)
        printError(`note: the issuer did not revoke the tokens: ${reason}`)
      })
      print(`You are signed out at ${session.url}.`)
    })
}

async function installationOf({ env, directory }: ReadCommandContext, given: string | undefined): Promise<string> {
  const url = given ?? env.PENSTOCK_URL ?? (await findLocalApi(env, directory))?.baseUrl
  if (url === undefined) throw new ConfigError('set PENSTOCK_URL or pass --url')
  return plainUrl(url)
}
