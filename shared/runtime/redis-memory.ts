/** Returns the used share of Redis' maxmemory, or 0 if it has no limit. `info` is the reply of INFO memory. */
export function usedMemoryShare(info: string): number {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0)
  const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0)
  return limit === 0 ? 0 : used / limit
}
