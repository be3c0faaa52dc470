import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import type { AppendResult, RowBatch, TableBlock } from '../../../workers/sink/row-batch.ts'

/** A batch whose rows are lines of text in two tables, because a batch does not depend on the content of its rows. */
export class TextBatch implements RowBatch {
  #lines: string[] = []
  #linesBeforeJob = 0

  get rows(): number {
    return this.#lines.length
  }

  get bytes(): number {
    return this.#lines.reduce((sum, line) => sum + line.length, 0)
  }

  append(_frame: PayloadFrame, body: Buffer): AppendResult {
    const text = body.toString()
    if (text.startsWith('undecodable')) return { ok: false, reason: 'truncated' }
    const lines = text.split('\n')
    this.#lines.push(...lines)
    return { ok: true, rows: lines.length, rejected: {} }
  }

  get capacityBytes(): number {
    return this.bytes
  }

  markJob(): void {
    this.#linesBeforeJob = this.#lines.length
  }

  rewindJob(): void {
    this.#lines.length = this.#linesBeforeJob
  }

  tables(): readonly TableBlock[] {
    const block = [Buffer.from(this.#lines.join('\n'))]
    return ['first', 'second'].map(table => ({ table, columns: ['line'], rows: this.#lines.length, block }))
  }

  reset(): void {
    this.#lines = []
  }

  shrink(): void {
    this.reset()
  }
}

/** Stores an insert once by its token, as ClickHouse does with `insert_deduplication_token`. */
export class TokenStore {
  readonly inserts: { table: string; token: string; lines: string[] }[] = []
  readonly #burned = new Set<string>()
  readonly #blocks = new Map<string, { table: string; lines: string[] }>()
  /** Runs before an insert is stored, and may throw or wait. */
  before: (insert: { table: string; token: string; lines: string[] }) => Promise<void> | void = () => {}
  /** Runs after an insert is stored; an error that it throws is a lost confirmation. */
  after: (insert: { table: string; token: string; lines: string[] }) => Promise<void> | void = () => {}

  readonly insert = async (block: TableBlock, token: string): Promise<void> => {
    const insert = { table: block.table, token, lines: Buffer.concat(block.block).toString().split('\n') }
    await this.before(insert)
    if (block.table === 'second' && insert.lines.includes('poison')) throw new PermanentError('no poison, please')
    this.inserts.push(insert)
    if (!this.#blocks.has(token)) this.#blocks.set(token, insert)
    await this.after(insert)
  }

  /** Uses up the token, as `burnToken` does. All requests are of one day. */
  readonly burnToken = async (table: string, token: string, days: readonly number[]) => {
    const isBurned = this.#burned.has(token) || !this.#blocks.has(token)
    if (!this.#blocks.has(token)) this.#blocks.set(token, { table, lines: [] })
    if (isBurned) this.#burned.add(token)
    return new Set(isBurned ? [] : days)
  }

  lines(table: string): string[] {
    return [...this.#blocks.values()].filter(block => block.table === table).flatMap(block => block.lines)
  }

  static lost(): never {
    throw new TransientError('the connection broke')
  }
}
