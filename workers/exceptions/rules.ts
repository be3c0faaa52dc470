import { LRUCache } from 'lru-cache'
import { MIB } from '../../schemas/units.ts'
import { type CompiledRules, filesOf, findingOfRule, NO_RULES, variantAfterRules } from '../../shared/grouping/rules.ts'
import { stackToRead } from '../../shared/grouping/stack-to-read.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import { WorkspaceRules } from '../sink/workspace-rules.ts'
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

/** The rules by which the exceptions of a batch are grouped. */
export class RulesOfBatch extends WorkspaceRules<CompiledRules> {
  readonly #known: KnownRules

  constructor(known: KnownRules) {
    super(known)
    this.#known = known
  }

  /** Runs after the rows were stored. Throws TransientErrors. */
  stored(): Promise<void> {
    return this.#known.stored(this.allRevisions)
  }

  /** Returns what the exception of a record belongs to, or undefined for one of a workspace that never had rules. */
  identify({ workspaceId, surfaceId }: PayloadFrame, record: RecordReader): RuledIdentity | undefined {
    const rules = this.of(workspaceId) ?? NO_RULES
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
