import type { Finding } from '../api/generated/client.ts'

/** Returns the title of a finding: that of a rule, else the type of its exception. */
export function titleOf({ title, type }: Pick<Finding, 'title' | 'type'>): string {
  return title ?? (type || 'Exception')
}

/** Returns the message of a finding, with the type if a rule has given it another title. */
export function messageOf({ title, type, message }: Pick<Finding, 'title' | 'type' | 'message'>): string {
  return title === undefined || type === '' ? message : `${type}: ${message}`
}

/** The innermost function of the application, and its place. */
export function Place({ finding: { topFrame } }: { readonly finding: Pick<Finding, 'topFrame'> }) {
  if (topFrame === undefined) return null
  return (
    <span class="place">
      {topFrame.function || 'outside of functions'} in {topFrame.file || 'an unknown file'}
      {topFrame.line > 0 && `:${topFrame.line}`}
    </span>
  )
}
