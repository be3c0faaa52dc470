import type { Finding } from '../api/generated/client.ts'

const TAGS: Readonly<Record<Finding['status'], string>> = {
  open: 'tag',
  regressed: 'tag bad',
  resolved: 'tag good',
  ignored: 'tag doubt',
}
const NEW_MS = 24 * 3_600_000

/** The status of a finding, and whether it is new: first received within a day. */
export function Status({ finding }: { readonly finding: Pick<Finding, 'status' | 'firstSeenAt'> }) {
  const isNew = finding.status === 'open' && Date.now() - Date.parse(finding.firstSeenAt) < NEW_MS
  return (
    <>
      <span class={TAGS[finding.status]}>{finding.status}</span> {isNew && <span class="tag doubt">new</span>}
    </>
  )
}
