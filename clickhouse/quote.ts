/** Quotes a database, table or column name for SQL, because names cannot be bound as parameters. */
export function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}

/** Quotes a text for SQL, where a statement takes no parameters. */
export function quoteText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
