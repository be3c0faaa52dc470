import { useKeys } from '../state/keys.ts'
import { addressOf, go } from '../state/router.ts'

/** The findings of the list that was shown last, in its order. */
let listed: readonly string[] = []

/** Remembers the findings of a list, among which the page of one leads to the next. */
export function rememberListed(ids: readonly string[]): void {
  listed = ids
}

/** Links to the findings before and after one, in the list from which it was opened. Nothing if it was opened otherwise. */
export function Neighbours({ id }: { readonly id: string }) {
  const at = listed.indexOf(id)
  const addressAt = (i: number) => {
    const other = at < 0 ? undefined : listed[i]
    return other === undefined ? undefined : addressOf(`findings/${other}`)
  }
  const [previous, next] = [addressAt(at - 1), addressAt(at + 1)]
  const follow = (address: string | undefined) => () => {
    if (address === undefined) return false
    go(address, { replace: true })
    scrollTo(0, 0)
    return true
  }
  useKeys({ p: follow(previous), n: follow(next) })
  if (at < 0) return null
  return (
    <nav class="neighbours" aria-label="Findings of the list">
      {previous && (
        <a href={previous} rel="prev">
          Previous
        </a>
      )}
      <span class="quiet">
        {at + 1} of {listed.length}
      </span>
      {next && (
        <a href={next} rel="next">
          Next
        </a>
      )}
    </nav>
  )
}
