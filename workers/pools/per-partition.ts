/** Returns a function that makes something for each partition once, when it is first used. */
export function perPartition<T>(make: (partition: number) => T): (partition: number) => T {
  const made = new Map<number, T>()
  return partition => {
    let known = made.get(partition)
    if (known === undefined) {
      known = make(partition)
      made.set(partition, known)
    }
    return known
  }
}
