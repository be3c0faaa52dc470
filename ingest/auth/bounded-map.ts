/** Sets an entry of a map that holds at most `limit`: the entry written longest ago makes room. */
export function setBounded<K, V>(map: Map<K, V>, limit: number, key: K, value: V): void {
  map.delete(key)
  if (map.size >= limit) {
    const oldest = map.keys().next()
    if (!oldest.done) map.delete(oldest.value)
  }
  map.set(key, value)
}
