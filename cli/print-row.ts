/** One line of a list: each cell as wide as its column, the last one as wide as it is. */
export function rowOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => printable(cell).padEnd(i === cells.length - 1 ? 0 : (widths[i] ?? 0)))
    .join('  ')
    .trimEnd()
}

/** Text of others, such that it cannot steer a terminal: control and format characters as `\u{…}`. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, char => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
