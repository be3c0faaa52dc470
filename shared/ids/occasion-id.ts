import { createHash } from 'node:crypto'
import { base32 } from './base32.ts'

/** Returns the id of an occasion of alerts: the same for the same workspace, finding, kind and cause, such as `evt_…`. */
export function occasionId(
  cause: readonly [workspaceId: string, findingId: string, kind: string, cause: string | number],
) {
  return `evt_${base32(createHash('sha256').update(JSON.stringify(cause)).digest(), 26)}`
}
