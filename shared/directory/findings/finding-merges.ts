/** The findings of a workspace that are merged into others: the id of each → the id of the finding that it is merged into. */
export type FindingMerges = ReadonlyMap<string, string>

/** Ids that one query binds. Twice as many are below the limit of a parameter. */
const IDS_AT_ONCE = 1_000

/** Returns the merges into one of these findings. */
export function mergesInto(merges: FindingMerges, findingIds: Iterable<string>): FindingMerges {
  if (merges.size === 0) return merges
  const ids = new Set(findingIds)
  return new Map([...merges].filter(([, into]) => ids.has(into)))
}

/** Returns these findings, in their order, and then those that are merged into them. */
export function withMerged(merges: FindingMerges, findingIds: readonly string[]): string[] {
  return [...findingIds, ...mergesInto(merges, findingIds).keys()]
}

/** Divides findings into parts that one query can bind, each with those merged into them, at the end, and their merges. */
export function* partsOf(
  merges: FindingMerges,
  findingIds: readonly string[],
): Generator<{ readonly findingIds: readonly string[]; readonly merges: FindingMerges }> {
  const relevant = mergesInto(merges, findingIds)
  const merged = Map.groupBy(relevant.keys(), id => relevant.get(id) ?? '')
  let [ids, count]: [string[], number] = [[], 0]
  for (const id of findingIds) {
    ids.push(id)
    count += 1 + (merged.get(id)?.length ?? 0)
    if (count < IDS_AT_ONCE) continue
    yield { findingIds: withMerged(relevant, ids), merges: mergesInto(relevant, ids) }
    ids = []
    count = 0
  }
  if (ids.length > 0) yield { findingIds: withMerged(relevant, ids), merges: mergesInto(relevant, ids) }
}
