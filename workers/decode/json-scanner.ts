import { JsonTokenizer, type ValueKind } from '../../shared/json/json-tokenizer.ts'

/** Kind of a member's value; for a number, its text. */
type MemberKind = Exclude<ValueKind, 'number'> | { readonly number: string }

/**
 * Validates one JSON document in chunks and reads the kinds of wanted members of the outermost object. Building the
 * document would cost too much: `JSON.parse` of 64 MiB of `[],[],…` takes 865 MB. A worker thread does not help. With
 * `resourceLimits` of 256 MB it parsed to the end, and then the whole process aborted.
 */
export class JsonScanner extends JsonTokenizer {
  /** The wanted members. The last of several members with the same name counts, as in JSON.parse. */
  readonly members = new Map<string, MemberKind>()
  readonly #wanted: readonly string[]
  #rootIsObject = false

  constructor(wantedMembers: readonly string[] = []) {
    super({ maxDepth: MAX_DEPTH, reportDepth: 1, names: wantedMembers })
    this.#wanted = wantedMembers
  }

  protected override onValueStart(kind: ValueKind): void {
    if (this.depth === 0) this.#rootIsObject = kind === 'object'
  }

  protected override onValueEnd(kind: ValueKind): void {
    const name = this.#rootIsObject && this.depth === 1 ? this.#wanted[this.name] : undefined
    if (name === undefined) return
    if (kind !== 'number') this.members.set(name, kind)
    else this.members.set(name, { number: this.numberText() ?? 'NaN' })
  }
}

/** No tool nests a source map as deeply as this. */
const MAX_DEPTH = 1_000
