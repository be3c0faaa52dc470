import type { SourceChange } from './product-tree.ts'

/** A change of the product that breaks its promise. */
interface Mutant extends SourceChange {
  readonly name: string
  /** A line of the differences that this change causes. */
  readonly shownBy: RegExp
}

/** The changes that a run with faults has to find. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a request is acknowledged before its commit',
    file: 'ingest/commit/group.ts',
    changes: [
      [
        '    this.#waiting.push(request)\n',
        `    const seal = this.#seals.at(-1) as ReceiptSeal
    const index = this.#waiting.push({ confirmed() {}, failed() {} }) - 1
    setImmediate(() => request.confirmed(this.#receipts.idOf(index, seal), { accepted: true, result: undefined }))\n`,
      ],
    ],
    shownBy: /\(acknowledged: 200\) is not stored/,
  },
  {
    name: 'an insert is repeated without its deduplication token',
    file: 'workers/sink/block-inserter.ts',
    // A block without a token would be recognized by its content.
    changes: [['table}`)', 'table}` + Math.random())']],
    shownBy: /is stored [2-9]\d* times/,
  },
  {
    name: 'a payload is deleted before its insert',
    file: 'workers/sink/store-batch.ts',
    changes: [
      [
        '    try {\n      await this.#inserter.insert(named, batch.tables(), holders, slot)\n',
        '    const isFirst = await this.#finish(named, batch, startedAt)\n    try {\n      await this.#inserter.insert(named, batch.tables(), holders, slot)\n',
      ],
      [
        '    return this.#finish(named, batch, startedAt)\n  }\n\n  /**\n   * Replaces',
        '    return isFirst\n  }\n\n  /**\n   * Replaces',
      ],
    ],
    shownBy: /\(acknowledged: 200\) is not stored/,
  },
  {
    name: 'a commit does not wait for replicas',
    file: 'shared/runtime/config.ts',
    changes: [["return REDIS_DURABILITY === 'replicated' ? REDIS_MIN_REPLICAS : 0", 'return 0']],
    // A promotion that forgets the name of a batch, and brings its payloads back, stores them again.
    shownBy: /\(acknowledged: 200\) is (not stored|stored [2-9]\d* times)/,
  },
]
