import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { deleteCountedRows } from '../../clickhouse/queries/retention/delete-counted-rows.ts'
import { reclaimDay } from '../../clickhouse/queries/retention/reclaim-day.ts'
import { RETAINED_TABLES, type RetainedTable } from '../../clickhouse/queries/retention/retained-tables.ts'
import { type RetentionGroup, selectExpiredDays } from '../../clickhouse/queries/retention/select-expired-days.ts'
import { type ExpiredObject, selectExpiredObjects } from '../../clickhouse/queries/retention/select-expired-objects.ts'
import type { Retention, Workspace } from '../../schemas/records/directory.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { firstKeptDay, keptDays } from '../../shared/runtime/retention.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of deleting what is past the retention of its workspace. */
export interface ExpireDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'workspaces' | 'workspaceById'>
  readonly objects: Pick<ObjectDeleter, 'delete'>
  readonly installationDays: number
  readonly logger: Logger
  readonly now: () => number
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
  readonly onExpired: (table: string, rows: number) => void
}

const STATEMENT_TIMEOUT_MS = 600_000
/** Workspaces in one statement. */
const WORKSPACES_AT_ONCE = 1_000
const OBJECTS_PAGE = 1_000
/** Tables whose rows name an object each. The objects go first, so that after an interruption their rows are still found. */
const OBJECT_TABLES = { replay_chunks: 'replays', dead_letters: 'dead-letters' } as const

type Retaining = Pick<Workspace, 'id'> & { readonly retention: Retention }

/**
 * Deletes the rows and objects that are past the retention of their workspace. Each day of a table is changed at most once
 * for all workspaces with the same retention. Where nothing has expired, a table costs one query. It may be interrupted
 * anywhere: the next run finds what is left. Throws the errors of the stores.
 */
export async function expireWorkspaces(deps: ExpireDeps): Promise<void> {
  const retaining: Retaining[] = []
  for await (const { id, retention } of deps.directory.workspaces()) if (retention) retaining.push({ id, retention })
  for (const table of RETAINED_TABLES) {
    for (const group of groupsOf(deps, retaining, table)) {
      await deps.assertElected()
      const days = await selectExpiredDays(deps.clickhouse, table, group, deadline())
      for (const day of days) {
        const workspaceIds = await stillExpired(deps, table, group, day)
        if (workspaceIds.length > 0) await expireDay(deps, table, { ...group, workspaceIds }, day)
      }
    }
  }
}

/** Groups the workspaces with a shorter retention than the installation by the first day that they keep. */
function* groupsOf(
  { installationDays, now }: ExpireDeps,
  retaining: readonly Retaining[],
  { kind }: RetainedTable,
): Generator<RetentionGroup> {
  const byDays = new Map<number, string[]>()
  for (const { id, retention } of retaining) {
    const days = keptDays(retention, kind, installationDays)
    if (days < installationDays) byDays.set(days, [...(byDays.get(days) ?? []), id])
  }
  for (const [days, workspaceIds] of byDays) {
    for (const page of pagesOf(workspaceIds, WORKSPACES_AT_ONCE)) {
      yield { workspaceIds: page, firstKeptDay: firstKeptDay(days, now()) }
    }
  }
}

/** Returns the workspaces of a group that still do not keep this day: a retention may become longer while days are deleted. */
async function stillExpired(
  { directory, installationDays, now }: ExpireDeps,
  { kind }: RetainedTable,
  { workspaceIds }: RetentionGroup,
  day: string,
): Promise<string[]> {
  const workspaces = await Promise.all(workspaceIds.map(id => directory.workspaceById(id)))
  return workspaces.flatMap(workspace => {
    if (workspace === undefined) return []
    const days = keptDays(workspace.retention, kind, installationDays)
    const isExpired = days < installationDays && Date.parse(day) / DAY_MS < firstKeptDay(days, now())
    return isExpired ? [workspace.id] : []
  })
}

async function expireDay(deps: ExpireDeps, table: RetainedTable, group: RetentionGroup, day: string): Promise<void> {
  const { clickhouse, logger } = deps
  await deps.assertElected()
  const name = table.table
  if (name in OBJECT_TABLES) await expireObjects(deps, name as keyof typeof OBJECT_TABLES, group, day)
  const { workspaceIds } = group
  const deletion = {
    table: name,
    where: 'workspace_id IN {workspaceIds: Array(String)}',
    params: { workspaceIds },
    day,
  }
  const id = [...workspaceIds].sort().join(' ')
  const counted = { ...deletion, isSource: table.isSource, reason: 'expired', id } as const
  const rows = await deleteCountedRows(deps.clickhouse, counted, deadline())
  await reclaimDay(clickhouse, { table: name, day }, deadline())
  deps.onExpired(name, rows)
  logger.info({ table: name, day, rows, workspaces: workspaceIds.length }, 'rows past their retention are deleted')
}

async function expireObjects(
  { clickhouse, objects, assertElected }: ExpireDeps,
  table: keyof typeof OBJECT_TABLES,
  group: RetentionGroup,
  day: string,
): Promise<void> {
  let after: ExpiredObject | undefined
  for (;;) {
    await assertElected()
    const page = await selectExpiredObjects(
      clickhouse,
      { ...group, table, day, after, limit: OBJECTS_PAGE },
      deadline(),
    )
    await objects.delete(
      OBJECT_TABLES[table],
      page.map(({ objectKey }) => objectKey),
    )
    after = page.at(-1)
    if (page.length < OBJECTS_PAGE) return
  }
}

const deadline = () => AbortSignal.timeout(STATEMENT_TIMEOUT_MS)
