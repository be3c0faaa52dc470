import { DAY_S } from '../../schemas/units.ts'
import { counted } from '../state/format.ts'
import { Time } from '../ui/text.tsx'

/** A choice of how long a new key works. */
export function Lifetime() {
  return (
    <label class="field">
      <span>Expires</span>
      <select name="days">
        <option value="">Never</option>
        <option value="1">After a day</option>
        <option value="30">After 30 days</option>
        <option value="90">After 90 days</option>
        <option value="365">After a year</option>
      </select>
    </label>
  )
}

/** Returns the chosen lifetime in seconds, or null for no expiry. */
export function secondsOf(fields: FormData): number | null {
  const days = Number(fields.get('days'))
  return days > 0 ? days * DAY_S : null
}

/** When a key was used last, and its requests of today. */
export function KeyUse(props: { readonly of: { readonly lastUsedAt: string | null; readonly requestsToday: number } }) {
  const { lastUsedAt, requestsToday } = props.of
  if (lastUsedAt === null) return <span class="quiet">not used in 62 days</span>
  return (
    <span class="quiet">
      last used <Time iso={lastUsedAt} />, {counted(requestsToday, 'request')} today
    </span>
  )
}

/** Whether a key works, and until when. */
export function KeyState(props: {
  readonly of: { readonly expiresAt: string | null; readonly revokedAt: string | null }
}) {
  const { expiresAt, revokedAt } = props.of
  if (revokedAt !== null) {
    return (
      <span class="tag doubt">
        revoked <Time iso={revokedAt} />
      </span>
    )
  }
  if (expiresAt === null) return <span class="tag good">works</span>
  if (Date.parse(expiresAt) <= Date.now()) return <span class="tag doubt">expired</span>
  return (
    <span class="tag good">
      works until <Time iso={expiresAt} exact />
    </span>
  )
}
