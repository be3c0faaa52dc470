import { type ParserOptions, parse } from '@babel/parser'
import { MIB } from '../../../schemas/units.ts'

/** Parsing briefly takes about a hundred times the memory of the source. Hand-written sources are smaller. */
const SOURCE_LIMIT_CHARACTERS = MIB

/** The functions of one source. */
export interface FunctionIndex {
  /** Number of functions. Each takes about 150 bytes. */
  readonly size: number
  /** Returns the name of the innermost function around a position of the text; '' outside functions. */
  nameAt(position: number): string
}

/**
 * Finds the functions of a JavaScript, TypeScript or JSX source, depending on its path. Returns undefined if the source
 * cannot be parsed (another language, or too large).
 */
export function indexFunctions(source: string, path: string): FunctionIndex | undefined {
  if (source.length > SOURCE_LIMIT_CHARACTERS) return undefined
  for (const options of parserOptions(path)) {
    try {
      // The functions are sorted by start, an outer function before its inner ones.
      const functions = nameFunctions(parse(source, options).program)
      return { size: functions.length, nameAt: position => nameAt(functions, position) }
    } catch {
      // Try the next dialect: the only errors are syntax errors and a nesting that is too deep for the stack.
    }
  }
  return undefined
}

function nameAt(functions: readonly NamedFunction[], position: number): string {
  let innermost = ''
  for (const { start, end, name } of functions) {
    if (start > position) break
    if (position < end) innermost = name
  }
  return innermost
}

const COMMON: ParserOptions = {
  sourceType: 'unambiguous',
  errorRecovery: true,
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowSuperOutsideMethod: true,
  allowUndeclaredExports: true,
  attachComment: false,
}

/** Returns the dialects to try. In `.ts`, `<T>x` is a cast; elsewhere it may be JSX. JavaScript comes before types. */
function parserOptions(path: string): ParserOptions[] {
  // A template of Vue or Svelte may parse as JSX, but without functions.
  if (/\.\w{1,10}$/.test(path) && !/\.[mc]?[jt]sx?$/i.test(path)) return []
  if (/\.[mc]?ts$/i.test(path)) return [withPlugins('typescript', 'decorators')]
  if (/\.tsx$/i.test(path)) return [withPlugins('typescript', 'jsx', 'decorators')]
  return [withPlugins('jsx', 'decorators'), withPlugins('typescript', 'jsx', 'decorators'), withPlugins('jsx', 'flow')]
}

function withPlugins(...names: ('typescript' | 'jsx' | 'flow' | 'decorators')[]): ParserOptions {
  return { ...COMMON, plugins: names.map(name => (name === 'decorators' ? 'decorators-legacy' : name)) }
}

const ANONYMOUS = '<anonymous>'
const MAX_NAME_LENGTH = 200

/** A function in a source: its positions in the text and its readable name. */
interface NamedFunction {
  readonly start: number
  readonly end: number
  readonly name: string
}

/** A node of the syntax tree, of any kind. */
interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

/** The context of a node in the tree. */
interface Surroundings {
  readonly node: SyntaxNode
  /** Name that the surrounding nodes give to the value of this node. */
  readonly givenName: string
  readonly className: string
}

/**
 * Returns the functions of a program, sorted by start. Methods are named `Class.method`, constructors `new Class`, and
 * anonymous functions after the target of their assignment. The walk is a loop, so the tree can have any depth.
 */
function nameFunctions(program: unknown): NamedFunction[] {
  const functions: NamedFunction[] = []
  const open: Surroundings[] = isNode(program) ? [{ node: program, givenName: '', className: '' }] : []
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, givenName } = next
    if (isFunction(node)) {
      functions.push({ start: node.start, end: endOf(node), name: functionName(node, next).slice(0, MAX_NAME_LENGTH) })
    }
    const isClass = node.type === 'ClassDeclaration' || node.type === 'ClassExpression'
    const className = isClass ? nameOf(node.id) || givenName : next.className
    for (const key in node) {
      for (const child of childrenOf(node[key])) {
        open.push({ node: child, givenName: givenNameOf(node, key, className, givenName), className })
      }
    }
  }
  return functions.sort((a, b) => a.start - b.start || b.end - a.end)
}

/**
 * Returns where the calls of a function end. No call is at its closing brace: where a map has that position, the function is
 * called there by the one around it, `(function () {…})()`.
 */
function endOf({ body, end }: SyntaxNode): number {
  return isNode(body) && body.type === 'BlockStatement' ? end - 1 : end
}

function isFunction({ type }: SyntaxNode): boolean {
  switch (type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
    case 'ObjectMethod':
    case 'ClassMethod':
    case 'ClassPrivateMethod':
      return true
    default:
      return false
  }
}

function functionName(node: SyntaxNode, { givenName, className }: Surroundings): string {
  switch (node.type) {
    case 'ClassMethod':
    case 'ClassPrivateMethod':
      if (node.kind === 'constructor') return className === '' ? 'constructor' : `new ${className}`
      return memberName(className, keyName(node))
    case 'ObjectMethod':
      return keyName(node) || ANONYMOUS
    default:
      return nameOf(node.id) || givenName || ANONYMOUS
  }
}

/** Returns the name that a child gets from its role in the parent, or the name that the parent passes on. */
function givenNameOf(parent: SyntaxNode, key: string, className: string, inherited: string): string {
  switch (parent.type) {
    case 'VariableDeclarator':
      return key === 'init' ? nameOf(parent.id) : ''
    case 'AssignmentExpression':
      return key === 'right' ? targetName(parent.left) : ''
    case 'AssignmentPattern':
      return key === 'right' ? nameOf(parent.left) : ''
    case 'ObjectProperty':
      return key === 'value' ? keyName(parent) : ''
    case 'ClassProperty':
    case 'ClassPrivateProperty':
    case 'ClassAccessorProperty':
      return key === 'value' ? memberName(className, keyName(parent)) : ''
    case 'ExportDefaultDeclaration':
      return key === 'declaration' ? 'default' : ''
    // These nodes pass on a function unchanged.
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
    case 'TypeCastExpression':
      return inherited
    default:
      return ''
  }
}

/** Returns `Cart.total` for `Cart.prototype.total`, and the last name for other members. */
function targetName(target: unknown): string {
  if (!isNode(target) || target.type !== 'MemberExpression') return nameOf(target)
  const { object } = target
  const own = keyName({ ...target, key: target.property } as SyntaxNode)
  if (!isNode(object) || object.type !== 'MemberExpression' || nameOf(object.property) !== 'prototype') return own
  return memberName(nameOf(object.object), own)
}

function memberName(className: string, name: string): string {
  if (name === '') return className === '' ? ANONYMOUS : `${className}.${ANONYMOUS}`
  return className === '' ? name : `${className}.${name}`
}

/** Returns the name of a property or method. A computed key has a name only if it is a literal. */
function keyName(node: SyntaxNode): string {
  const { key } = node
  if (!isNode(key)) return ''
  if (key.type === 'StringLiteral' || key.type === 'NumericLiteral') return String(key.value)
  return node.computed === true ? '' : nameOf(key)
}

function nameOf(node: unknown): string {
  if (!isNode(node)) return ''
  if (node.type === 'Identifier') return String(node.name)
  if (node.type === 'PrivateName') return `#${nameOf(node.id)}`
  return ''
}

function childrenOf(value: unknown): SyntaxNode[] {
  if (Array.isArray(value)) return value.filter(isNode)
  return isNode(value) ? [value] : []
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}
