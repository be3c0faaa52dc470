/** Share of their rounds that tests of many random inputs run: all of them, unless a run is short (`.ci/run`). */
const SHARE = Number(process.env.ROUNDS_SHARE || 1)

/** Returns how many of these rounds a test runs. */
export function rounds(count: number): number {
  return Math.ceil(count * SHARE)
}
