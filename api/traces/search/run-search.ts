import { readsTooMuch } from '../../../clickhouse/client.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { CallerRead } from '../../http/guarded-route.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'

/** Runs a search of traces in a slot of its workspace, and refuses one that reads too much. `times` are its parameters of time. */
export async function runTraceSearch<T>(
  traceSearches: Pick<FairSlots, 'run'>,
  { workspaceId, deadline }: Pick<CallerRead<never>, 'workspaceId' | 'deadline'>,
  times: readonly [string, string],
  search: () => Promise<T>,
): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await traceSearches.run(workspaceId, search, deadline) }
  } catch (error) {
    if (!readsTooMuch(error)) throw error
    const [from, to] = times
    return invalid(
      `the search would read too much: choose a shorter time by "${from}" and "${to}", or search fewer traces by another condition`,
    )
  }
}
