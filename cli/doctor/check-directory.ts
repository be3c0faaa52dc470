import { DAY_MS } from '../../schemas/units.ts'
import { isEmptied } from '../../shared/directory/emptied.ts'
import { readReceiptSecret } from '../../shared/directory/receipt-secret.ts'
import { directoryKeys } from '../../shared/directory/record.ts'
import type { Examined } from '../command-context.ts'
import { counted } from '../terminal.ts'
import { type Finding, found } from './check.ts'

/** A key that expires this soon is a warning. */
const SOON_MS = 7 * DAY_MS

/** Examines the directory: whether it has anything, the secret of receipts, and keys that expire soon. */
export async function checkDirectory({ directory, now }: Examined): Promise<Finding[]> {
  const { redis, store } = await directory()
  if (await isEmptied(redis)) {
    return [found.fault('the directory is empty: restore its backup, or create a workspace')]
  }
  const findings: Finding[] = []
  let workspaces = 0
  for await (const { id, slug } of store.workspaces()) {
    workspaces++
    const counts = await Promise.all(
      [directoryKeys.workspaceKeyEnds(id), directoryKeys.surfaceKeyEnds(id)].map(ends =>
        redis.zcount(ends, now(), now() + SOON_MS),
      ),
    )
    const keys = counts.reduce((sum, count) => sum + count, 0)
    if (keys > 0) findings.push(found.warning(`${slug}: ${counted(keys, 'key expires', 'keys expire')} within 7 days`))
  }
  if (workspaces === 0) findings.push(found.warning('the directory has no workspace'))
  if ((await readReceiptSecret(redis)) === undefined) {
    findings.push(found.warning('the secret of receipts is missing: an edge makes it when it starts'))
  }
  return findings.length > 0 ? findings : [found.ok(counted(workspaces, 'workspace'))]
}
