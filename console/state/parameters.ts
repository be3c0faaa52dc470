/** Returns the members that have a value: an operation refuses a parameter that is empty. */
export function present<T extends object>(parameters: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

/** Returns parameters of the address by their names, those that are there. */
export function given<K extends string>(query: URLSearchParams, ...names: readonly K[]): { [N in K]?: string } {
  return Object.fromEntries(
    names.map(name => [name, query.get(name)]).filter(([, value]) => value !== null && value !== ''),
  ) as { [N in K]?: string }
}
