import type { Command } from 'commander'
import { z } from 'zod'
import {
  RETAINED_KINDS,
  RETENTION_MAX_DAYS,
  type RetainedKind,
  type Retention,
  type Workspace,
} from '../../schemas/records/directory.ts'
import { keptDays, retentionFault, sessionsFault } from '../../shared/runtime/retention.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findWorkspace, WORKSPACE_OPTION } from '../find-workspace.ts'
import { parsedBy, rowOf } from '../terminal.ts'

const SHOW_HELP = `
${exitCodesHelp({ [EXIT.notFound]: 'the workspace does not exist' })}

Example:
  $ npm run cli -- retention show --workspace acme`

const SET_HELP = `
Rows and objects are kept for RETENTION_DAYS, releases until they are deleted. A workspace may have a shorter retention for
each kind of data. What is not named stays as it is, and "default" removes a value. Sessions must be kept at least as long as
traces, logs, findings, replay and dead letters, because an erasure finds the data of a person by them. Reads hide what is
older within ten seconds. The workers then delete it for good.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace does not exist' })}

Examples:
  $ npm run cli -- retention set --workspace acme --traces 14 --replay 7
  $ npm run cli -- retention set --workspace acme --traces default`

const DAYS_RULE = `It must be a whole number of days from 1 to ${RETENTION_MAX_DAYS}, or default.`
const daysSchema = z
  .string()
  .regex(/^[1-9][0-9]{0,3}$/, DAYS_RULE)
  .transform(Number)
  .refine(days => days <= RETENTION_MAX_DAYS, DAYS_RULE)
const changeSchema = z.union([z.literal('default'), daysSchema], DAYS_RULE)
const WIDTHS = [14, 8]

/** Options of the kinds, by the names that commander gives them: `deadLetters` for `--dead-letters`. */
type Changes = Readonly<Record<string, unknown>>
interface RetentionOptions extends Changes {
  readonly workspace: string
  readonly json?: boolean
}

/** Adds `retention show` and `retention set`. */
export function addRetention(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('retention').description('how long the data of a workspace is kept')
  command
    .command('show')
    .description('show how many days each kind of data is kept')
    .requiredOption(...WORKSPACE_OPTION)
    .option('--json', 'print the days as JSON')
    .addHelpText('after', SHOW_HELP)
    .action(({ workspace: slugOrId, json }: RetentionOptions) =>
      context.withDirectory(async ({ store, retentionDays }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace) print(context, workspace, { retentionDays, json })
      }),
    )
  const set = command
    .command('set')
    .description('change how many days kinds of data are kept')
    .requiredOption(...WORKSPACE_OPTION)
  for (const kind of RETAINED_KINDS) {
    set.option(`--${kind} <days>`, `retention of ${kind}`, parsedBy(changeSchema))
  }
  set
    .option('--json', 'print the days as JSON')
    .addHelpText('after', SET_HELP)
    .action((options: RetentionOptions) => setRetention(options, context))
}

async function setRetention(options: RetentionOptions, context: DirectoryCommandContext): Promise<void> {
  const { exit } = context
  if (RETAINED_KINDS.every(kind => changeOf(options, kind) === undefined)) {
    return exit(EXIT.usage, 'pass at least one kind of data, such as --traces 14')
  }
  await context.withDirectory(async ({ store, retentionDays }) => {
    const workspace = await findWorkspace(store, options.workspace, context)
    if (workspace === undefined) return
    let fault = retentionFault(changed({}, options), retentionDays)
    const change = (before: Retention) => {
      const after = changed(before, options)
      fault = sessionsFault(after, retentionDays)
      return fault === undefined ? after : before
    }
    const after =
      fault === undefined
        ? await store.changeRetention(workspace.id, change, { by: null, now: context.now() })
        : undefined
    if (fault !== undefined) return exit(EXIT.usage, fault)
    print(context, after ?? workspace, { retentionDays, json: options.json })
  })
}

function changed(before: Retention, changes: Changes): Retention {
  const after = { ...before }
  for (const kind of RETAINED_KINDS) {
    const days = changeOf(changes, kind)
    if (days === 'default') delete after[kind]
    else if (days !== undefined) after[kind] = days
  }
  return after
}

function print(
  context: DirectoryCommandContext,
  { slug, retention = {} }: Workspace,
  { retentionDays, json }: { retentionDays: number; json: boolean | undefined },
): void {
  const kinds = RETAINED_KINDS.map(kind => {
    const days = kind === 'releases' ? (retention.releases ?? null) : keptDays(retention, kind, retentionDays)
    return { kind, days, isDefault: retention[kind] === undefined }
  })
  if (json) {
    const days = Object.fromEntries(kinds.map(({ kind, ...kept }) => [kind, kept]))
    context.print(JSON.stringify({ workspace: slug, maxDays: retentionDays, kinds: days }))
    return
  }
  context.print(rowOf(['KIND', 'DAYS', 'FROM'], WIDTHS))
  for (const { kind, days, isDefault } of kinds) {
    const shown = days === null ? 'no limit' : String(days)
    context.print(rowOf([kind, shown, isDefault ? 'installation' : 'workspace'], WIDTHS))
  }
}

/** Returns the value of the option of a kind of data. */
function changeOf(options: Changes, kind: RetainedKind): number | 'default' | undefined {
  const name = kind.replaceAll(/-[a-z]/g, ([, letter = '']) => letter.toUpperCase())
  return options[name] as number | 'default' | undefined
}
