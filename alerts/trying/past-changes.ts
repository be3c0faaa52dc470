import type { FindingWork } from '../../schemas/records/finding-work.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { FINDING_ENTRIES_KEPT } from '../../shared/directory/findings/activity.ts'
import { memberOccasion } from '../../shared/directory/occasions.ts'
import type { PastOccasion, PastOf } from './past-findings.ts'

/** Most findings whose activity is read, those that changed last. */
export const CHANGED_MAX = 1_000
const AT_ONCE = 50

/** Finds what members did with findings since `fromMs`, as far as the activity of each is kept. */
export async function pastChanges(
  directory: Pick<Directory, 'findingActivity'>,
  { workspaceId, fromMs, toMs }: PastOf,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<{ readonly occasions: readonly PastOccasion[]; readonly isCut: boolean }> {
  const changed = works
    .filter(({ changedAt }) => Date.parse(changedAt) >= fromMs)
    .toSorted((a, b) => Date.parse(b.changedAt) - Date.parse(a.changedAt))
  const found = new Map<string, PastOccasion>()
  for (const page of pagesOf(changed.slice(0, CHANGED_MAX), AT_ONCE)) {
    signal.throwIfAborted()
    const activities = await Promise.all(
      page.map(async ({ findingId }) => {
        const finding = { workspaceId, findingId }
        return {
          finding,
          entries: await directory.findingActivity(finding, { limit: FINDING_ENTRIES_KEPT, after: undefined }),
        }
      }),
    )
    for (const { finding, entries } of activities) {
      for (const entry of entries) {
        const atMs = Date.parse(entry.createdAt)
        // A finding that another one was merged into has its entries too.
        if (atMs < fromMs || atMs >= toMs || found.has(entry.id)) continue
        found.set(entry.id, { occasion: memberOccasion(finding, entry), place: undefined })
      }
    }
  }
  return { occasions: [...found.values()], isCut: changed.length > CHANGED_MAX }
}
