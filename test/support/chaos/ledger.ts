/**
 * Knowledge of a client about a payload. `acknowledged`: the answer was 200. `refused`: all answers were 4xx, so that nothing is
 * stored. `unknown`: an answer was 503, or there was none, so that it is stored once or not at all.
 */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** Outcome that the service owes an acknowledged payload. */
type Fate = 'stored' | 'dead-lettered'

/** A payload that a client has sent, once. */
export interface LedgerEntry {
  /** Table of its rows. */
  readonly table: string
  /** Identifies the payload in its rows, and in its dead letter. */
  readonly id: string
  /** Ids of its rows, which are stored all or none. */
  readonly rows: readonly string[]
  readonly fate: Fate
  /** Key and SHA-256 of the content of its object in the object store, if it has one. */
  readonly object?: { readonly key: string; readonly sha256: string }
  outcome: Outcome
  /** Status of the answer, or the error of the client. */
  answer: string
  /** Id of the receipt, if the payload was acknowledged. */
  receiptId: string | undefined
}

/** Everything that the clients of a run have sent, with the answers. */
export class Ledger {
  readonly entries: LedgerEntry[] = []

  /** Adds a payload before it is sent. Until its answer is known, it counts as unknown. */
  add(entry: Pick<LedgerEntry, 'table' | 'id' | 'rows' | 'fate' | 'object'>): LedgerEntry {
    const added: LedgerEntry = { ...entry, outcome: 'unknown', answer: 'none', receiptId: undefined }
    this.entries.push(added)
    return added
  }

  /** Returns what was acknowledged of the payloads from this index on, by the names of `summary`. */
  acknowledgedSince(index: number): Set<string> {
    const acknowledged = this.entries.slice(index).filter(({ outcome }) => outcome === 'acknowledged')
    return new Set(acknowledged.map(nameOf))
  }

  /** Counts the payloads of each table, and those that become dead letters, by outcome. */
  summary(): Record<string, Record<Outcome, number>> {
    const counts: Record<string, Record<Outcome, number>> = {}
    for (const entry of this.entries) {
      const name = nameOf(entry)
      counts[name] ??= { acknowledged: 0, refused: 0, unknown: 0 }
      counts[name][entry.outcome]++
    }
    return counts
  }

  /** Counts the answers. */
  answers(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { answer } of this.entries) counts[answer] = (counts[answer] ?? 0) + 1
    return counts
  }
}

const nameOf = ({ table, fate }: LedgerEntry) => (fate === 'stored' ? table : fate)
