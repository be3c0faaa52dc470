import { LRUCache } from 'lru-cache'
import { MIB } from '../../schemas/units.ts'
import { type CompiledRules, filesOf, findingOfRule, NO_RULES, variantAfterRules } from '../../shared/grouping/rules.ts'
import { stackToRead } from '../../shared/grouping/stack-to-read.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { type RecordReader, TEXT } from './exception-records.ts'
import type { KnownRules } from './known-rules.ts'

/** The files of the stacks that were read last, by variant. Reading a stack takes up to 110 µs. Their size is in characters. */
const FILES = new LRUCache<string, readonly string[]>({ maxSize: 4 * MIB })

/** The variant and the finding of an exception by rules. */
interface RuledIdentity {
  /** 16 bytes. */
  readonly variantId: Buffer
  readonly findingId: string
  readonly revision: number
}

/** The rules by which the exceptions of a batch are grouped: those of a workspace do not change while it is formed. */
export class RulesOfBatch {
  readonly #known: KnownRules
  readonly #rules = new Map<string, CompiledRules>()

  constructor(known: KnownRules) {
    this.#known = known
  }

  /** Revisions by workspace, without those that have no rules. */
  get revisions(): Readonly<Record<string, number>> {
    const used = [...this.#rules].filter(([, { revision }]) => revision > 0)
    return Object.fromEntries(used.map(([workspaceId, { revision }]) => [workspaceId, revision]))
  }

  /** Reads the rules for these requests. A batch that is formed again has those of its record. Throws TransientErrors. */
  async prepare(frames: readonly PayloadFrame[], recorded?: Readonly<Record<string, number>>): Promise<void> {
    for (const { workspaceId } of frames) {
      if (this.#rules.has(workspaceId)) continue
      const revision = recorded === undefined ? undefined : (recorded[workspaceId] ?? 0)
      this.#rules.set(workspaceId, await this.#known.of(workspaceId, revision))
    }
  }

  /** Runs after the rows were stored. Throws TransientErrors. */
  stored(): Promise<void> {
    return this.#known.stored(new Map([...this.#rules].map(([id, { revision }]) => [id, revision])))
  }

  /** Returns what the exception of a record belongs to, or undefined for one of a workspace that never had rules. */
  identify({ workspaceId, surfaceId }: PayloadFrame, record: RecordReader): RuledIdentity | undefined {
    const rules = this.#rules.get(workspaceId) ?? NO_RULES
    if (rules.revision === 0) return undefined
    const { bytes } = record
    const sent = bytes.subarray(record.at('variantId'), record.at('variantId') + 16)
    const [type, message] = [record.text(TEXT.type), record.text(TEXT.message)]
    const exception = { workspaceId, surfaceId, serviceName: record.text(TEXT.serviceName), type, message }
    const match = rules.match({ ...exception, files: () => filesOfRecord(sent.toString('hex'), type, message, record) })
    const found = match.rule && findingOfRule(match.rule, exception)
    return {
      variantId: variantAfterRules(sent, match),
      findingId: found ?? bytes.toString('latin1', record.at('findingId'), record.at('findingId') + 30),
      revision: rules.revision,
    }
  }

  reset(): void {
    this.#rules.clear()
  }
}

/** Returns rows that are grouped by rules, which are forgotten with the rows. */
export function withRules(rows: RowBatch, rules: RulesOfBatch): RowBatch {
  const { reset, shrink } = rows
  return Object.assign(rows, {
    prepare: (...given: Parameters<RulesOfBatch['prepare']>) => rules.prepare(...given),
    stored: () => rules.stored(),
    rules: () => rules.revisions,
    reset() {
      reset()
      rules.reset()
    },
    shrink() {
      shrink()
      rules.reset()
    },
  })
}

function filesOfRecord(variantId: string, type: string, message: string, record: RecordReader): readonly string[] {
  const known = FILES.get(variantId)
  if (known !== undefined) return known
  const read = readStack(stackToRead({ type, message, stacktrace: record.text(TEXT.stacktrace) }))
  // A file is a slice of the stack, all of which it would keep in memory.
  const files = JSON.parse(JSON.stringify(filesOf(read))) as string[]
  FILES.set(variantId, files, { size: 100 + files.join('').length })
  return files
}
