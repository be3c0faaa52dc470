import { randomInt } from 'node:crypto'

/** A source map as a bundler writes it, and positions in its script for stacks. */
export interface SourceMapPayload {
  readonly json: Buffer
  /** Line and column of calls in the generated script, both from 1, and the source file of each. */
  readonly calls: readonly { readonly line: number; readonly column: number; readonly source: string }[]
}

/** A module of a bundle: its source, and its mappings, which fill one generated line. */
interface Module {
  /** The source as JSON. */
  readonly content: string
  /** All segments except the first, which depends on the previous module. */
  readonly segments: string
  /** Fields of the last segment. */
  readonly last: { readonly line: number; readonly column: number; readonly name: number }
  /** Generated columns of calls, from 0. */
  readonly calls: readonly number[]
}

const MODULES = 12
const FUNCTIONS_OF_A_MODULE = 24
const CALLS_TOLD = 1_000

const NAMES =
  'account address basket button cancel card checkout customer delivery discount email invoice item list order page payment price product query render select shipping state status total update user value view'.split(
    ' ',
  )

let modules: readonly Module[] | undefined

/** Creates a map of about this size with the text of its sources. Its first member `file` makes its bytes unique. */
export function sourceMapPayload(file: string, bytes: number): SourceMapPayload {
  modules ??= Array.from({ length: MODULES }, makeModule)
  const sources: string[] = []
  const contents: string[] = []
  const lines: string[] = []
  const calls: SourceMapPayload['calls'][number][] = []
  let last = { line: 0, column: 0, name: 0 }
  let length = 0
  while (length < bytes || sources.length === 0) {
    const module = modules[randomInt(MODULES)] as Module
    const source = `../src/${NAMES[sources.length % NAMES.length]}/module-${sources.length}.js`
    const first = vlq(0) + vlq(sources.length === 0 ? 0 : 1) + vlq(-last.line) + vlq(-last.column) + vlq(-last.name)
    lines.push(first + module.segments)
    sources.push(source)
    contents.push(module.content)
    for (const column of module.calls) {
      if (calls.length < CALLS_TOLD) calls.push({ line: lines.length, column: column + 1, source })
    }
    length += source.length + module.content.length + module.segments.length + 12
    last = module.last
  }
  const head = JSON.stringify({ version: 3, file, names: NAMES, sources }).slice(0, -1)
  const text = `${head},"sourcesContent":[${contents.join(',')}],"mappings":"${lines.join(';')}"}`
  return { json: Buffer.from(text), calls }
}

/** Creates a module with a segment for every token. As in a minifier, names become short and spaces disappear. */
function makeModule(): Module {
  const source = Array.from({ length: FUNCTIONS_OF_A_MODULE }, makeFunction).join('\n\n')
  const calls: number[] = []
  let segments = ''
  let generated = 0
  let last = { line: 0, column: 0, name: 0 }
  let lastGenerated = 0
  for (const [line, text] of source.split('\n').entries()) {
    for (const { 0: token, index: column } of text.matchAll(/[A-Za-z]+|\d+|\S/g)) {
      const name = NAMES.indexOf(token)
      if (generated > 0) {
        const place = vlq(generated - lastGenerated) + vlq(0) + vlq(line - last.line) + vlq(column - last.column)
        segments += `,${place}${name < 0 ? '' : vlq(name - last.name)}`
        if (name >= 0 && text[column + token.length] === '(') calls.push(generated)
      }
      last = { line, column, name: generated > 0 && name >= 0 ? name : last.name }
      lastGenerated = generated
      generated += name < 0 ? token.length : 1
    }
  }
  return { content: JSON.stringify(source), segments, last, calls }
}

function makeFunction(): string {
  const [a, b, c, d] = Array.from({ length: 4 }, () => NAMES[randomInt(NAMES.length)])
  return `/** Computes the ${a} of this ${b}, or ${randomInt(1_000)} where there is none. */
export function ${a}Of${b}${randomInt(10_000)}(${b}, options) {
  const current = ${c}(${b}.${d}, { limit: ${randomInt(100)} })
  if (current === undefined || current.${a} > options.limit) {
    throw new RangeError('no ${a} for this ${b}: ' + ${d}(options))
  }
  return current.entries.map(entry => ${a}(entry) * ${randomInt(10)}).filter(Boolean)
}`
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Encodes Base64 VLQ (ECMA-426): the sign in the lowest bit, five bits a digit, a sixth bit if more digits follow. */
function vlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  let text = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    text += DIGITS[rest > 0 ? digit | 32 : digit]
  } while (rest > 0)
  return text
}
