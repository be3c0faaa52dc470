import { DANGLING } from '../choose-spans.ts'
import type { TraceColumns } from '../columns/load-columns.ts'

/** A parent that is not retained in its trace. */
export interface MissingParent {
  readonly spanId: string
  /** Index of the first of its children. */
  readonly firstChild: number
  readonly childCount: number
  /** Whether it is of another service, as its first child states. */
  readonly isRemote?: boolean
}

/** Most missing parents that a response names. `danglingParentCount` counts the spans of all. */
const MISSING_PARENTS = 1_000

/** W3C trace flags as OTLP extends them: whether it is known that the parent is of another service, and whether it is. */
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

/** Returns the parents that are not retained, in the order of their first children. */
export function findMissingParents({ skeleton, arranged: { numbers, shape }, facts }: TraceColumns): MissingParent[] {
  const missing = new Map<string, MissingParent & { childCount: number }>()
  numbers.forEach((number, i) => {
    if (shape.parents[i] !== DANGLING) return
    const spanId = skeleton.parentSpanId(number)
    const known = missing.get(spanId)
    if (known !== undefined) {
      known.childCount++
      return
    }
    if (missing.size === MISSING_PARENTS) return
    const flags = facts.flags[skeleton.rowOf(number)] ?? 0
    const isRemote = (flags & HAS_IS_REMOTE) === 0 ? undefined : (flags & IS_REMOTE) !== 0
    missing.set(spanId, { spanId, firstChild: i, childCount: 1, ...(isRemote === undefined ? {} : { isRemote }) })
  })
  return [...missing.values()]
}
