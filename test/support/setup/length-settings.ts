import type { Length } from '../length.ts'

/** Settings of vitest that depend on `--mode`: a run is short without it. The name of a file decides which runs it is in. */
export function lengthSettings(mode: string): { length: Length; env: { TEST_LENGTH: Length }; exclude: string[] } {
  const length = mode === 'full' || mode === 'nightly' ? mode : 'short'
  const exclude = {
    short: ['**/*.long.test.ts', '**/*.nightly.test.ts'],
    full: ['**/*.nightly.test.ts'],
    nightly: [],
  }[length]
  return { length, env: { TEST_LENGTH: length }, exclude }
}
