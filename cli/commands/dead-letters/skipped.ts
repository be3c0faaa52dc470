import type { SkippedLetter, SkipReason } from '../../../letters/replay-letters.ts'

/** Numbers of letters that a command has not changed, by reason. */
export type Skipped = Partial<Record<SkipReason, number>>

/** Adds the letters that a step has not changed. */
export function addSkipped(skipped: Skipped, letters: readonly SkippedLetter[]): void {
  for (const { reason } of letters) skipped[reason] = (skipped[reason] ?? 0) + 1
}

/** Returns the end of a sentence about what was done. */
export function andSkipped(skipped: Skipped): string {
  return Object.entries(skipped)
    .map(([reason, count]) => `, ${count} skipped (${reason})`)
    .join('')
}
