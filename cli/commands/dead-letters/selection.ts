import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LetterFilter } from '../../../clickhouse/queries/letters/letter.ts'
import { readLetterId } from '../../../letters/letter-id.ts'
import type { Selection } from '../../../letters/select-page.ts'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'

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
    .option('--from <time>', 'requests that arrived at or after this time (RFC 3339)', timeOf)
    .option('--to <time>', 'requests that arrived before this time', timeOf)
    .addOption(new Option('--queue <queue>', 'letters of this queue').choices(QUEUES))
    .option('--surface <id>', 'letters of this surface')
    .option('--reason <reason>', 'letters with this reason, such as decoder_fault')
}

/** Returns the filter that the options state. */
export function filterOf({ from, to, queue, surface, reason }: SelectionOptions): LetterFilter {
  return { fromMs: from, toMs: to, queue, surfaceId: surface, reason }
}

/** Returns the letters that the options select, or a text that states what is wrong with them. */
export function selectionOf(options: SelectionOptions & { readonly all?: boolean }): Selection | string {
  const hasFilter = Object.values(filterOf(options)).some(value => value !== undefined)
  const given = [options.id !== undefined, hasFilter, options.all === true].filter(Boolean).length
  if (given !== 1) return 'pass --id, --all, or conditions such as --queue and --reason: one of the three'
  if (options.id === undefined) return { filter: filterOf(options) }
  const keys = options.id.map(readLetterId)
  const malformed = options.id[keys.indexOf(undefined)]
  if (malformed !== undefined) return `${JSON.stringify(malformed)} is not the id of a dead letter`
  return { keys: keys.filter(key => key !== undefined) }
}

function timeOf(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new InvalidArgumentError('It must be an RFC 3339 time, such as 2026-11-21T10:00:00Z.')
  return time
}
