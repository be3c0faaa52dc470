import { JsonMachine, type ValueKind } from '../../shared/json/json-machine.ts'
import { COMMA_OR_END, FAILED, MINUS, nextOfNumber, type State, VALUE } from '../../shared/json/json-states.ts'

/** What a member of the document is; of a number, its text. */
export type MemberKind = Exclude<ValueKind, 'number'> | { readonly number: string }

/**
 * Checks one JSON document as its bytes come, and tells what the members of its outermost object are. Nothing is built of
 * it. `JSON.parse` of 64 MiB of `[],[],…` takes 865 MB, and in a worker thread as well: with `resourceLimits` of 256 MB it
 * went on to the end, and the whole process was aborted behind it.
 */
export class JsonScanner extends JsonMachine {
  /** Values of any kind so far: what building the document would cost. */
  values = 0
  /** The members of the outermost object that were asked for. Of one name the last counts, as for JSON.parse. */
  readonly members = new Map<string, MemberKind>()
  readonly #wanted: ReadonlySet<string>
  #key = ''

  constructor(wantedMembers: Iterable<string> = []) {
    super({ state: VALUE, maxDepth: MAX_DEPTH, lineBreakIsBlank: true })
    this.#wanted = new Set(wantedMembers)
  }

  /** Whether the document is whole. */
  end(): boolean {
    return this.depth === 0 && this.values > 0 && this.#afterNumber(0x20) === COMMA_OR_END
  }

  /** The state once a number that nothing else ends is ended by this byte. */
  #afterNumber(byte: number): State {
    return this.state >= MINUS && this.state < FAILED ? nextOfNumber(this.state, byte) : this.state
  }

  protected onKey(): void {
    this.#key = this.token.toString('latin1', 0, this.tokenLength)
  }

  protected onValue(kind: ValueKind): void {
    this.values++
    if (kind !== 'number') this.#say(kind)
  }

  protected onNumber(): void {
    if (this.#isMember()) this.#say({ number: this.token.toString('latin1', 0, this.tokenLength) })
  }

  protected onClose(): State {
    return COMMA_OR_END
  }

  protected onOutside(): State {
    return FAILED
  }

  #isMember(): boolean {
    return this.depth === 1 && this.nesting[0] === 1
  }

  #say(kind: MemberKind): void {
    if (this.#isMember() && this.#wanted.has(this.#key)) this.members.set(this.#key, kind)
  }
}

/** No tool nests a map so deep. */
const MAX_DEPTH = 1_000
