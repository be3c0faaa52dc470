/** How much of itself a test runs: `short` in `npm test`, `full` in `npm run test:full` and CI, `nightly` (test/README.md). */
export type Length = 'short' | 'full' | 'nightly'

const LENGTH = (process.env.TEST_LENGTH ?? 'short') as Length
const SHARE = { short: 0.05, full: 0.2, nightly: 1 }[LENGTH]

/** Returns how many of these rounds a test runs: all of them at night. */
export function rounds(count: number): number {
  return Math.ceil(count * SHARE)
}

/** Returns the cases that a test runs: all at night, else the first of them. Each takes long, and they attack alike. */
export function casesOf<T>(cases: Readonly<Record<string, T>>): [string, T][] {
  const entries = Object.entries(cases)
  return entries.slice(0, rounds(entries.length))
}

/** Returns a duration that the environment may name, and that is longer at night. */
export function lasting(setting: string, { nightly, else: short }: { nightly: number; else: number }): number {
  return Number(process.env[setting] || (LENGTH === 'nightly' ? nightly : short))
}
