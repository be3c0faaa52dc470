/** Bytes of a key of at least four bytes that decoders look for. */
export type KeyBytes = DataView

/** Returns the bytes of a key of at least four ASCII characters. */
export function keyBytes(name: string): KeyBytes {
  return new DataView(Uint8Array.from(name, character => character.charCodeAt(0)).buffer)
}

/**
 * Returns whether the bytes that end at `end`, at least as many as `key` has, are those of `key`. Compares four at a time;
 * the last four overlap those before.
 */
export function endsWithKey(view: DataView, end: number, key: KeyBytes): boolean {
  const start = end - key.byteLength
  const last = key.byteLength - 4
  for (let i = 0; i < last; i += 4) if (view.getInt32(start + i) !== key.getInt32(i)) return false
  return view.getInt32(start + last) === key.getInt32(last)
}
