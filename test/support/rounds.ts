/** Share of their rounds that tests of many random inputs run: all of them, unless a run is short (`.ci/run`). */
const SHARE = Number(process.env.ROUNDS_SHARE || 1)

/** Returns how many of these rounds a test runs. */
export function rounds(count: number): number {
  return Math.ceil(count * SHARE)
}

/** Returns the cases that a test runs, the first of them if a run is short. Each takes long, and they attack alike. */
export function casesOf<T>(cases: Readonly<Record<string, T>>): [string, T][] {
  const entries = Object.entries(cases)
  return entries.slice(0, rounds(entries.length))
}
