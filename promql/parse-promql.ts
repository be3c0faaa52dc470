import type { SyntaxNode, Tree } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import type { LabelMatcher } from '../clickhouse/queries/metrics/label-matchers.ts'
import { DAY_MS } from '../schemas/units.ts'
import { checkTypes } from './check-types.ts'
import {
  AGGREGATIONS,
  type BinaryExpression,
  type Expression,
  FUNCTION_ARGS,
  NAME_LABEL,
  type SelectorExpression,
  type VectorMatching,
  WITH_PARAMETER,
} from './expression.ts'
import { numberOf, textOfLiteral } from './literals.ts'
import { PromqlError } from './promql-error.ts'

/** Most characters of a query. */
const QUERY_CHARACTERS = 8_192
const DEPTH_MAX = 64
/** A hundred years. */
const DURATION_MS_MAX = 100 * 365 * DAY_MS

/** Constructs of the grammar that are not evaluated, as the message names them. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  SubqueryExpr: 'a subquery',
  StepInvariantExpr: 'the modifier @',
  AnchoredExpr: 'the modifier anchored',
  SmoothedExpr: 'the modifier smoothed',
}

/** Parses a query. Throws a PromqlError that names the position and the construct if it is invalid or not supported. */
export function parsePromql(text: string): Expression {
  if (text.length > QUERY_CHARACTERS) throw new PromqlError(`must have at most ${QUERY_CHARACTERS} characters`)
  const top = parsedStrictly(text).topNode.firstChild
  if (top === null) throw new PromqlError('parse error: no expression found in input')
  const expression = new Reader(text).read(top)
  checkTypes(expression)
  return expression
}

/** Parses a selector of series, such as `match[]` has. */
export function parseSelector(text: string): SelectorExpression {
  const expression = parsePromql(text)
  if (expression.kind === 'selector' && expression.rangeMs === undefined && expression.offsetMs === 0) return expression
  throw new PromqlError('must be a selector of series, such as {"service.name"="shop"}')
}

/** Mending a text with faults takes a second; a strict parser ends at the first one. */
const STRICT = parser.configure({ strict: true })

function parsedStrictly(text: string): Tree {
  try {
    return STRICT.parse(text)
  } catch (error) {
    const at = error instanceof SyntaxError ? /^No parse at (\d+)$/.exec(error.message) : null
    if (at === null) throw error
    throw syntaxFault(text, Number(at[1]))
  }
}

function syntaxFault(text: string, at: number): PromqlError {
  const from = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0)
  const called = /^\s*([A-Za-z_]\w*)\s*\(/.exec(text.slice(text.slice(0, from).search(/[A-Za-z_]\w*\s*$/)))
  const found = /^(\w+|.?)/su.exec(text.slice(from))?.[0].slice(0, 40) ?? ''
  if (called !== null && found === '(') {
    return new PromqlError(`${positionOf(text, from)}: parse error: unknown function with name "${called[1]}"`)
  }
  return new PromqlError(
    `${positionOf(text, from)}: parse error: unexpected ${found.trim() === '' ? 'end of input' : JSON.stringify(found)}`,
  )
}

/** Returns line and column, both from 1. */
function positionOf(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n')
  return `${lines.length}:${(lines.at(-1) as string).length + 1}`
}

const NO_MATCHING: VectorMatching = { labels: [], isOn: false, many: undefined, include: [] }

/** Makes an expression of the tree of the grammar. */
class Reader {
  readonly #text: string
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  read(node: SyntaxNode): Expression {
    if (++this.#depth > DEPTH_MAX) throw this.#fault(node, `nested more than ${DEPTH_MAX} deep`)
    const expression = this.#readNode(node)
    this.#depth--
    return expression
  }

  #readNode(node: SyntaxNode): Expression {
    switch (node.name) {
      case 'NumberDurationLiteral':
        return { kind: 'number', value: numberOf(this.#textOf(node)) }
      case 'StringLiteral':
        return { kind: 'string', text: textOfLiteral(this.#textOf(node)) }
      case 'ParenExpr':
        return this.read(child(node))
      case 'UnaryExpr': {
        const of = this.read(node.lastChild as SyntaxNode)
        return this.#textOf(child(node)) === '-' ? { kind: 'negation', of } : of
      }
      case 'VectorSelector':
        return this.#selector(node)
      case 'MatrixSelector':
        return this.#changeLast(child(node), this.read(child(node)), (of, leaf) => {
          if (of.kind === 'selector' && leaf.name === 'VectorSelector') {
            return { ...of, rangeMs: this.#duration(node.lastChild as SyntaxNode) }
          }
          throw this.#fault(node, 'parse error: ranges only allowed for vector selectors')
        })
      case 'OffsetExpr':
        return this.#changeLast(child(node), this.read(child(node)), (of, leaf) => {
          if (of.kind === 'selector' && leaf.name === 'VectorSelector') {
            return { ...of, offsetMs: this.#offset(node.lastChild as SyntaxNode) }
          }
          throw this.#fault(node, 'parse error: offset modifier must be preceded by a selector')
        })
      case 'FunctionCall':
        return this.#call(node)
      case 'AggregateExpr':
        return this.#aggregate(node)
      case 'BinaryExpr':
        return this.#binary(node)
      default:
        throw this.#unsupported(node, UNSUPPORTED[node.name] ?? `${node.name}`)
    }
  }

  #textOf({ from, to }: SyntaxNode): string {
    return this.#text.slice(from, to)
  }

  #fault(node: SyntaxNode, message: string): PromqlError {
    return new PromqlError(`${positionOf(this.#text, node.from)}: ${message}`)
  }

  #unsupported(node: SyntaxNode, construct: string): PromqlError {
    return this.#fault(node, `${construct} is not supported: docs/grafana.md lists what is`)
  }

  /**
   * Changes the last operand of what `node` was read as. The grammar puts a range and an offset around the whole of `a + b`, while
   * in PromQL they belong to `b`.
   */
  #changeLast(
    node: SyntaxNode,
    read: Expression,
    change: (last: Expression, leaf: SyntaxNode) => Expression,
  ): Expression {
    const inner = node.name === 'BinaryExpr' || node.name === 'UnaryExpr' ? node.lastChild : null
    if (read.kind === 'negation' && inner !== null) {
      // A power of a negative number is read as a negation too.
      return { ...read, of: this.#changeLast(node.name === 'UnaryExpr' ? inner : node, read.of, change) }
    }
    if (read.kind === 'binary' && node.name === 'BinaryExpr' && inner !== null) {
      return { ...read, right: this.#changeLast(inner, read.right, change) }
    }
    if (inner !== null || node.name === 'MatrixSelector' || node.name === 'OffsetExpr') {
      return this.#changeLast(inner ?? child(node), read, change)
    }
    return change(read, node)
  }

  #selector(node: SyntaxNode): SelectorExpression {
    const matchers: LabelMatcher[] = []
    const name = node.getChild('Identifier')
    if (name !== null) matchers.push({ label: NAME_LABEL, operator: '=', value: this.#textOf(name) })
    for (const part of childrenOf(node.getChild('LabelMatchers'))) {
      if (part.name === 'QuotedLabelName') {
        matchers.push({ label: NAME_LABEL, operator: '=', value: textOfLiteral(this.#textOf(part)) })
        continue
      }
      const [label, operator, value] = childrenOf(part)
      if (label === undefined || operator === undefined || value === undefined) continue
      matchers.push({
        label: this.#label(label),
        operator: this.#textOf(operator) as LabelMatcher['operator'],
        value: textOfLiteral(this.#textOf(value)),
      })
    }
    if (matchers.every(matcher => matchesEmpty(matcher))) {
      throw this.#fault(node, 'parse error: vector selector must contain at least one non-empty matcher')
    }
    return { kind: 'selector', matchers, offsetMs: 0, rangeMs: undefined }
  }

  #label(node: SyntaxNode): string {
    const text = this.#textOf(node)
    return node.name === 'QuotedLabelName' ? textOfLiteral(text) : text
  }

  #labels(node: SyntaxNode | null): string[] {
    return childrenOf(node).map(label => this.#label(label))
  }

  #duration(node: SyntaxNode): number {
    const literal = node.firstChild
    if (literal?.name !== 'NumberDurationLiteralInDurationContext' || literal.nextSibling !== null) {
      throw this.#unsupported(node, 'a duration that is not a single literal')
    }
    const ms = Math.round(numberOf(this.#textOf(literal)) * 1_000)
    if (!(ms > 0)) throw this.#fault(node, 'parse error: duration must be greater than 0')
    if (ms > DURATION_MS_MAX) throw this.#fault(node, 'parse error: duration out of range')
    return ms
  }

  #offset(node: SyntaxNode): number {
    const [first, second] = childrenOf(node)
    if (first?.name === 'UnaryOp' && second !== undefined) {
      return this.#textOf(first) === '-' ? -this.#duration(second) : this.#duration(second)
    }
    return this.#duration(node)
  }

  #call(node: SyntaxNode): Expression {
    const name = this.#textOf(child(node))
    if (!Object.hasOwn(FUNCTION_ARGS, name)) throw this.#unsupported(node, `the function ${name}()`)
    return { kind: 'call', name, args: childrenOf(node.lastChild).map(arg => this.read(arg)) }
  }

  #aggregate(node: SyntaxNode): Expression {
    const operator = this.#textOf(child(node)).toLowerCase()
    if (!AGGREGATIONS.includes(operator)) throw this.#unsupported(node, `the aggregation ${operator}()`)
    const args = childrenOf(node.getChild('FunctionCallBody')).map(arg => this.read(arg))
    const expected = WITH_PARAMETER.includes(operator) ? 2 : 1
    const of = args.at(-1)
    if (args.length !== expected || of === undefined) {
      throw this.#fault(
        node,
        `parse error: wrong number of arguments for aggregate expression provided, expected ${expected}`,
      )
    }
    const modifier = node.getChild('AggregateModifier')
    const grouping = this.#labels(modifier?.getChild('GroupingLabels') ?? null)
    const isWithout = modifier?.getChild('Without') != null
    return { kind: 'aggregate', operator, parameter: expected === 2 ? args[0] : undefined, of, grouping, isWithout }
  }

  #binary(node: SyntaxNode): Expression {
    const parts = childrenOf(node)
    const [first, operatorNode] = parts
    const last = parts.at(-1)
    if (first === undefined || operatorNode === undefined || last === undefined) throw this.#fault(node, 'parse error')
    const fill = node.getChild('FillModifier')
    if (fill !== null) throw this.#unsupported(fill, 'the modifier fill')
    const operator = this.#textOf(operatorNode).toLowerCase()
    if (['atan2', '</', '>/'].includes(operator)) throw this.#unsupported(operatorNode, `the operator ${operator}`)
    const left = this.read(first)
    const binary: BinaryExpression = {
      kind: 'binary',
      operator,
      left,
      right: this.read(last),
      isBool: node.getChild('BoolModifier') !== null,
      matching: this.#matching(node.getChild('MatchingModifierClause')),
    }
    // The grammar reads -1 ^ 2 as the square of a negative number. In PromQL the power binds closer than the sign.
    if (
      operator === '^' &&
      first.name === 'NumberDurationLiteral' &&
      left.kind === 'number' &&
      /^-/.test(this.#textOf(first))
    ) {
      return { kind: 'negation', of: { ...binary, left: { kind: 'number', value: -left.value } } }
    }
    return binary
  }

  #matching(clause: SyntaxNode | null): VectorMatching {
    if (clause === null) return NO_MATCHING
    const [labels, include] = clause.getChildren('GroupingLabels')
    const isLeft = clause.getChild('GroupLeft') !== null
    const isRight = clause.getChild('GroupRight') !== null
    return {
      labels: this.#labels(labels ?? null),
      isOn: clause.getChild('On') !== null,
      many: isLeft ? 'left' : isRight ? 'right' : undefined,
      include: this.#labels(include ?? null),
    }
  }
}

/** Returns whether a matcher accepts series without the label, as far as its text shows that. */
function matchesEmpty({ operator, value }: LabelMatcher): boolean {
  if (operator === '=') return value === ''
  if (operator === '!=') return value !== ''
  return operator === '=~' ? /^(\.\*|)$/.test(value) : !/^(\.\+|)$/.test(value)
}

function child(node: SyntaxNode): SyntaxNode {
  return node.firstChild as SyntaxNode
}

function childrenOf(node: SyntaxNode | null): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let at = node?.firstChild ?? null; at !== null; at = at.nextSibling) children.push(at)
  return children
}
