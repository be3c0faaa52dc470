import { JsonTokenizer, type ValueKind } from './json-tokenizer.ts'

/** Text of a member, with its nesting. */
interface MemberText {
  readonly text: string
  /** Nesting of its objects and arrays: 0 for a plain value, 1 for an object of plain values. */
  readonly depth: number
}

/**
 * Returns the text of one member of a JSON object exactly as it is written. Numbers of any size, the order of keys and
 * keys like `__proto__` survive, which `JSON.stringify(JSON.parse(text))` would lose. The text must be valid JSON and an
 * object. The last of several members with the same name counts, as in JSON.parse.
 */
export function memberText(json: string, name: string): MemberText | undefined {
  const bytes = Buffer.from(json)
  const finder = new MemberFinder(name)
  finder.add(bytes)
  const { found } = finder
  return found && { text: bytes.toString('utf8', found.start, found.end), depth: found.depth }
}

/** Returns how deeply the objects and arrays of a valid JSON text are nested: 0 for a plain value. */
export function nestingDepth(json: string): number {
  const tokenizer = new JsonTokenizer({ ...VALID_JSON, reportDepth: -1 })
  tokenizer.add(Buffer.from(json))
  return tokenizer.deepest
}

const VALID_JSON = { maxDepth: Number.POSITIVE_INFINITY, checks: 'nothing' } as const

/** Finds the position of a member of the outermost object. */
class MemberFinder extends JsonTokenizer {
  found: { readonly start: number; readonly end: number; readonly depth: number } | undefined

  constructor(name: string) {
    super({ ...VALID_JSON, reportDepth: 1, names: [name] })
  }

  protected override onValueStart(): void {
    this.deepest = this.depth
  }

  protected override onValueEnd(_kind: ValueKind, start: number, end: number): void {
    if (this.depth !== 1 || this.name === -1) return
    this.found = { start, end, depth: this.deepest - 1 }
  }
}
