import type { RetentionAnswer } from '../../schemas/http/retention.ts'
import { RETAINED_KINDS, type Workspace } from '../../schemas/records/directory.ts'
import { keptDays } from '../../shared/runtime/retention.ts'

/** Presents how long each kind of data of a workspace is kept (docs/api/retention.md#retention). */
export function presentRetention({ retention = {} }: Workspace, installationDays: number): RetentionAnswer {
  const kinds = RETAINED_KINDS.map(kind => {
    const days = kind === 'releases' ? (retention.releases ?? null) : keptDays(retention, kind, installationDays)
    return [kind, { days, isDefault: retention[kind] === undefined }]
  })
  return { retention: { maxDays: installationDays, kinds: Object.fromEntries(kinds) } }
}
