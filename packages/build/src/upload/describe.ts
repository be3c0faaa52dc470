/** Returns a number with its noun, such as `1 file` and `2 files`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/** Returns the name and the message of anything that was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

/** Returns up to `limit` lines, indented, and how many more there are. */
export function listed(lines: readonly string[], limit = 20): string {
  const more = lines.length - limit
  return [...lines.slice(0, limit), ...(more > 0 ? [`and ${more} more`] : [])].map(line => `\n  ${line}`).join('')
}
