/** Returns the columns of attributes that are all texts without a zero byte. */
export function packAttributes(attributes: Readonly<Record<string, string>>): { keys: string; values: string } {
  const keys = Object.keys(attributes)
  if (keys.length === 0) return { keys: '', values: '' }
  const list = keys.map(key => `${key}\0`).join('')
  return { keys: `${'1'.repeat(keys.length)}\0${list}`, values: Object.values(attributes).join('\0') }
}
