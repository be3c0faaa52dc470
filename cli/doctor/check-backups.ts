import { DAY_MS, HOUR_MS } from '../../schemas/units.ts'
import { Backups } from '../../shared/backup/backups.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** Workers make a backup each hour by default, and each day at least. */
const LATE_MS = 3 * HOUR_MS
const MISSING_MS = DAY_MS + 2 * HOUR_MS

/** Examines the newest backup of the directory: its age, and whether it can be restored with the key of the settings. */
export async function checkBackups({ objects, config, now }: Examined): Promise<Finding[]> {
  const key = config.DIRECTORY_BACKUP_KEY
  const [newest] = await new Backups({ objects, key, now }).list()
  if (newest === undefined) return [found.warning('there is no backup of the directory')]
  const ageMs = now() - Date.parse(newest.createdAt)
  const age = `the newest backup of the directory was made ${describeAge(ageMs)} ago`
  const findings: Finding[] = []
  if (ageMs > MISSING_MS) findings.push(found.fault(age))
  else if (ageMs > LATE_MS) findings.push(found.warning(age))
  if (newest.isEncrypted && key === undefined) {
    findings.push(found.fault('the newest backup is encrypted, and DIRECTORY_BACKUP_KEY is not set: set it to its key'))
  }
  if (!newest.isEncrypted && key !== undefined) {
    findings.push(found.warning('the newest backup is not encrypted, although DIRECTORY_BACKUP_KEY is set'))
  }
  return findings.length > 0 ? findings : [found.ok(age)]
}

function describeAge(ms: number): string {
  return ms < 2 * HOUR_MS ? `${Math.max(0, Math.round(ms / 60_000))} minutes` : `${Math.round(ms / HOUR_MS)} hours`
}
