import { DAY_MS } from '../../schemas/units.ts'
import type { Finding } from '../api/generated/client.ts'

const TAGS: Readonly<Record<Finding['status'], string>> = {
  open: 'tag',
  regressed: 'tag bad',
  resolved: 'tag good',
  ignored: 'tag doubt',
}
const NEW_MS = DAY_MS

/** The status of a finding, and whether it is new: first occurred since a time, or within a day. */
export function Status(props: {
  readonly finding: Pick<Finding, 'status' | 'firstSeenAt'>
  readonly since?: string | undefined
}) {
  const { finding, since } = props
  const newFrom = since === undefined ? Date.now() - NEW_MS : Date.parse(since)
  const isNew = finding.status === 'open' && Date.parse(finding.firstSeenAt) >= newFrom
  return (
    <>
      <span class={TAGS[finding.status]}>{finding.status}</span> {isNew && <span class="tag doubt">new</span>}
    </>
  )
}
