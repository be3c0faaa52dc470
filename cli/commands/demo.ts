import { Presets, SingleBar } from 'cli-progress'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { ConfigError } from '../../shared/runtime/config.ts'
import type { DemoCommandContext } from '../command-context.ts'
import { DemoFailure, Installation, type InstallationAccess } from '../demo/installation.ts'
import { type DemoLinks, type DemoProgress, runDemo } from '../demo/run-demo.ts'
import { type Truth, totalOf } from '../demo/truth.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findLocalDemo } from '../local-environment.ts'
import { counted, nounFor, parsedBy } from '../terminal.ts'

const HELP = `
Sends a small shop to the installation that runs here: the source maps of two releases of its page, a checkout that fails in a
recorded session, and hours of history of six services in five languages. It prints links to the failing checkout as soon as that is
stored. Each run adds a shop with ids of its own.

For another installation, set PENSTOCK_URL, PENSTOCK_PUBLIC_KEY, PENSTOCK_SECRET_KEY (both of one surface, the second with the scope
release:write) and PENSTOCK_TOKEN (a session token).

${exitCodesHelp({ [EXIT.failed]: 'the installation does not answer, or refuses something' })}`

const whole = (most: number) =>
  parsedBy(z.coerce.number(`It must be a whole number from 1 to ${most}.`).int().min(1).max(most))

interface DemoCommandOptions {
  readonly hours: number
  readonly sessions: number
  readonly seed: string
  readonly json?: boolean
}

/** Adds `demo`, which sends a small shop. */
export function addDemo(parent: Command, context: DemoCommandContext): void {
  parent
    .command('demo')
    .description('send a small shop, to look at it in the console')
    .addOption(new Option('--hours <count>', 'hours of history').argParser(whole(72)).default(12))
    .addOption(new Option('--sessions <count>', 'visits of the history').argParser(whole(10_000)).default(60))
    .option('--seed <text>', 'another shop', '1')
    .option('--json', 'print links and counts of what was sent as JSON')
    .addHelpText('after', HELP)
    .action(async ({ json, ...options }: DemoCommandOptions) => {
      const { print, exit, now, stderr } = context
      const say = json ? (text: string) => void stderr.write(`${text}\n`) : print
      try {
        const installation = new Installation(await findAccess(context))
        const progress = createProgress(stderr, links => say(describeLinks(links, options.hours)))
        const { links, truth } = await runDemo(installation, { ...options, nowMs: now() }, progress)
        if (json) print(JSON.stringify({ links, truth }))
        else print(describeTruth(truth))
      } catch (error) {
        if (!(error instanceof DemoFailure)) throw error
        exit(EXIT.failed, error.message)
      }
    })
}

async function findAccess({ env, directory }: DemoCommandContext): Promise<InstallationAccess> {
  const {
    PENSTOCK_URL: url,
    PENSTOCK_PUBLIC_KEY: publicKey,
    PENSTOCK_SECRET_KEY: secretKey,
    PENSTOCK_TOKEN: token,
  } = env
  if (url && publicKey && secretKey && token) return { url, publicKey, secretKey, token }
  if (url) throw new ConfigError('with PENSTOCK_URL, set PENSTOCK_PUBLIC_KEY, PENSTOCK_SECRET_KEY and PENSTOCK_TOKEN')
  const local = await findLocalDemo(env, directory)
  if (local === undefined)
    throw new DemoFailure(
      'Penstock does not run here: start it in another terminal, with "npm start" or "npx penstock start"',
    )
  const { baseUrl, sessionToken, ...keys } = local
  return { url: baseUrl, token: sessionToken, ...keys }
}

function describeLinks({ finding, trace, session }: DemoLinks, hours: number): string {
  return [
    '',
    'A checkout has failed. See in the console:',
    '',
    `  the finding, with source lines  ${finding}`,
    `  its trace                       ${trace}`,
    `  its session, with recording     ${session}`,
    '',
    'Sign in first with the link that the start has printed.',
    `Meanwhile, ${counted(hours, 'hour')} of history ${nounFor(hours, 'is', 'are')} sent.`,
    '',
  ].join('\n')
}

function describeTruth(truth: Truth): string {
  const format = (value: number) => value.toLocaleString('en')
  const [spans, logs, points] = (['spans', 'logs', 'points'] as const).map(part => format(totalOf(truth, part)))
  const sessions = format(Object.keys(truth.sessions).length)
  return `Stored: ${spans} spans, ${logs} log records, ${points} data points, ${sessions} sessions.`
}

/** Creates the progress: a bar on a terminal, and else a line for each step. */
function createProgress(output: NodeJS.WriteStream, linked: DemoProgress['linked']): DemoProgress {
  let bar: SingleBar | undefined
  return {
    linked,
    begin(step, total) {
      if (!output.isTTY) {
        output.write(`${step}: ${counted(total, 'request')}\n`)
        return
      }
      const format = `${step} [{bar}] {value}/{total} requests`
      bar = new SingleBar({ format, stream: output, gracefulExit: false }, Presets.shades_classic)
      bar.start(total, 0)
    },
    advance: () => bar?.increment(),
    end() {
      bar?.stop()
      bar = undefined
    },
  }
}
