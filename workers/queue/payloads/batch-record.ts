import { TransientError } from '../../../shared/runtime/errors.ts'

/**
 * Requests by job and label: runs of positions in the payload, each as its first and its last position. Adjacent requests
 * are one run, so that a flood of garbage takes a few bytes.
 */
export type RefusedRequests = Readonly<Record<string, RefusedOfJob>>

/** Requests of one job by label, in the same form. */
type RefusedOfJob = Readonly<Record<string, readonly number[]>>

/** Label of requests of which some records are left out. All other labels mean that nothing of the request is stored. */
export const STORED_IN_PART = 'records_rejected'

/** Kinds of rules of workspaces: they group exceptions, scrub values, and drop records. */
export type RuleKind = 'grouping' | 'scrubbing' | 'dropping'

/** Revisions of rules by kind and workspace, without those that have none. */
export type RuleRevisions = Readonly<Partial<Record<RuleKind, Readonly<Record<string, number>>>>>

/** What a worker made of the jobs of a batch, recorded before it inserts the first row. */
export interface Formation {
  /** `DECODER_VERSION` of the worker. */
  readonly decoder: number
  /** Rows to insert, by table, without tables that have none. */
  readonly tables: Readonly<Record<string, number>>
  /** Hash of the number of rows of each request. */
  readonly digest: number
  readonly refused: RefusedRequests
  /** Requests whose outcome is logged when their exceptions are stored, which leave when this batch is. */
  readonly passedOn?: RefusedRequests
  /** Revisions of the rules by which the rows are made. A repetition uses the same, to make the same rows. */
  readonly rules?: RuleRevisions | undefined
}

/** The record of a named batch in Redis. */
export interface BatchRecord {
  /** In the order in which the batch was formed. */
  readonly jobIds: readonly string[]
  /** Tables that already contain the rows of this batch, because it is a part of an earlier one. */
  readonly storedTables: readonly string[]
  /** Requests whose rows `storedTables` do not contain, or not all of them. */
  readonly unstored?: RefusedRequests | undefined
  /** Absent while nothing was inserted under the id of this batch. */
  readonly formed?: Formation | undefined
  /**
   * The id under which the inserts of `formed` were sent, if another worker has formed the batch differently. Its
   * difference must be resolved (`workers/sink/another-version/`).
   */
  readonly burnedId?: string | undefined
}

/** A batch that is recorded in Redis, with all its jobs, before its first insert. */
export interface NamedBatch extends BatchRecord {
  readonly batchId: string
}

const VERSION = 1

/** Returns the stored form of a record. */
export function encodeRecord(record: BatchRecord): string {
  const { jobIds, storedTables, unstored, formed, burnedId } = record
  return JSON.stringify({ version: VERSION, jobIds, storedTables, unstored, formed, burnedId })
}

/** Reads a record. Throws a TransientError if a newer version of the workers has written it. */
export function decodeRecord(text: string): BatchRecord {
  const { version, ...record } = JSON.parse(text) as BatchRecord & { version: number }
  if (version > VERSION)
    throw new TransientError(`record version ${version} is newer than ${VERSION}: left to a newer worker`)
  return record
}

/** Returns the label with which a request is among `refused`, or undefined. */
export function labelAt(refused: RefusedRequests | undefined, jobId: string, index: number): string | undefined {
  for (const [label, runs] of Object.entries(refused?.[jobId] ?? {})) {
    for (let i = 0; i < runs.length; i += 2) {
      if (index >= (runs[i] as number) && index <= (runs[i + 1] as number)) return label
    }
  }
  return undefined
}

/** Collects refused requests. The positions of a job must be added in ascending order. */
export class RefusedCollector {
  readonly #jobs: Record<string, Record<string, number[]>> = {}

  add(jobId: string, index: number, label: string): void {
    const labels = this.#jobs[jobId] ?? {}
    const runs = labels[label] ?? []
    if (runs.at(-1) === index - 1) runs[runs.length - 1] = index
    else runs.push(index, index)
    labels[label] = runs
    this.#jobs[jobId] = labels
  }

  get requests(): RefusedRequests {
    return this.#jobs
  }
}

/** Returns the requests of these jobs. */
export function refusedOf(refused: RefusedRequests | undefined, jobIds: readonly string[]): RefusedRequests {
  return Object.fromEntries(jobIds.flatMap(jobId => (refused?.[jobId] ? [[jobId, refused[jobId]]] : [])))
}

/** Returns those of a job that are among `count` requests from `first`, at their positions in a payload of these alone. */
export function refusedWithin(refused: RefusedOfJob | undefined, first: number, count: number): RefusedOfJob {
  const within: Record<string, number[]> = {}
  for (const [label, runs] of Object.entries(refused ?? {})) {
    const shifted: number[] = []
    for (let i = 0; i < runs.length; i += 2) {
      const from = Math.max((runs[i] as number) - first, 0)
      const to = Math.min((runs[i + 1] as number) - first, count - 1)
      if (from <= to) shifted.push(from, to)
    }
    if (shifted.length > 0) within[label] = shifted
  }
  return within
}

/** Returns whether two workers have made the same of a batch. Equal formations are inserted under the same tokens. */
export function isSameFormation(a: Formation, b: Formation): boolean {
  return a === b || describe(a) === describe(b)
}

/** The version of the decoder is left out: versions that make the same rows agree. */
function describe({ tables, digest, refused, passedOn = {}, rules = {} }: Formation): string {
  const revisions = Object.entries(rules).map(([kind, ofKind]) => [kind, Object.entries(ofKind).sort()])
  return JSON.stringify([tables, digest, refused, passedOn, revisions.sort()])
}
