import { type Command, Option } from 'commander'
import { z } from 'zod'
import type { LetterFilter } from '../../../clickhouse/queries/letters/letter.ts'
import { readLetterId } from '../../../letters/letter-id.ts'
import type { PurgeLettersDeps } from '../../../letters/purge-letters.ts'
import type { ReplayLettersDeps, SkippedLetter, SkipReason } from '../../../letters/replay-letters.ts'
import type { Selection } from '../../../letters/select-page.ts'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import type { Workspace } from '../../../schemas/records/directory.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { parsedBy } from '../../terminal.ts'

const timeSchema = z.iso
  .datetime({ offset: true, error: 'It must be an RFC 3339 time, such as 2026-11-21T10:00:00Z.' })
  .transform(text => Date.parse(text))
const wordSchema = z.string().min(1, 'It must not be empty.')

/** Options that select dead letters. */
export interface SelectionOptions {
  readonly id?: readonly string[]
  readonly from?: number
  readonly to?: number
  readonly queue?: QueueName
  readonly surface?: string
  readonly reason?: string
}

/** Adds the options of a filter to a command. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('--from <time>', 'requests that arrived at or after this time (RFC 3339)', parsedBy(timeSchema))
    .option('--to <time>', 'requests that arrived before this time', parsedBy(timeSchema))
    .addOption(new Option('--queue <queue>', 'letters of this queue').choices(QUEUES))
    .option('--surface <id>', 'letters of this surface', parsedBy(wordSchema))
    .option('--reason <reason>', 'letters with this reason, such as decoder_fault', parsedBy(wordSchema))
}

/** Returns the filter that the options state, or a text that states what is wrong with them. */
export function filterOf({ from, to, queue, surface, reason }: SelectionOptions): LetterFilter | string {
  if (from !== undefined && to !== undefined && from >= to) return '--from must be before --to'
  return { fromMs: from, toMs: to, queue, surfaceId: surface, reason }
}

/** Returns the letters that the options select, or a text that states what is wrong with them. */
export function selectionOf(options: SelectionOptions & { readonly all?: boolean }): Selection | string {
  const filter = filterOf(options)
  if (typeof filter === 'string') return filter
  const hasFilter = Object.values(filter).some(value => value !== undefined)
  const given = [options.id !== undefined, hasFilter, options.all === true].filter(Boolean).length
  if (given !== 1) return 'pass --id, --all, or conditions such as --queue and --reason: one of the three'
  if (options.id === undefined) return { filter }
  const keys = options.id.map(readLetterId)
  const malformed = options.id[keys.indexOf(undefined)]
  if (malformed !== undefined) return `--id: ${JSON.stringify(malformed)} is not the id of a dead letter`
  return { keys: keys.filter(key => key !== undefined) }
}

/** Stores of dead letters. */
export interface LetterStores extends ReplayLettersDeps, PurgeLettersDeps {
  readonly objects: ObjectStore
}

/** Runs a command with the stores, on one workspace. If the workspace does not exist, only the error is printed. */
export type WithLetters = (
  slugOrId: string,
  run: (stores: LetterStores, workspace: Workspace) => Promise<void>,
) => Promise<void>

/** How long one step may take. */
export const STEP_TIMEOUT_MS = 120_000

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
