import {
  COMPARISONS,
  type Expression,
  type ExpressionType,
  FUNCTION_ARGS,
  OPTIONAL_ARGS,
  SET_OPERATORS,
  typeOf,
} from './expression.ts'
import { PromqlError } from './promql-error.ts'

/** Types as messages of Prometheus name them. */
const NAMES: Readonly<Record<ExpressionType, string>> = {
  scalar: 'scalar',
  string: 'string',
  vector: 'instant vector',
  range: 'range vector',
}

/** Refuses an expression whose operands do not have the types that their operations need. */
export function checkTypes(expression: Expression): void {
  switch (expression.kind) {
    case 'negation':
      checkTypes(expression.of)
      expectOne(expression.of, ['scalar', 'vector'], 'unary expression')
      return
    case 'call': {
      const { name, args } = expression
      const types = FUNCTION_ARGS[name] ?? []
      const least = OPTIONAL_ARGS.includes(name) ? types.length - 1 : types.length
      if (args.length < least || args.length > types.length) {
        throw fault(`expected ${least} argument(s) in call to "${name}", got ${args.length}`)
      }
      for (const [i, arg] of args.entries()) {
        checkTypes(arg)
        expectOne(arg, [types[i] as ExpressionType], `call to function "${name}"`)
      }
      return
    }
    case 'aggregate':
      checkTypes(expression.of)
      expectOne(expression.of, ['vector'], 'aggregation expression')
      if (expression.parameter === undefined) return
      checkTypes(expression.parameter)
      expectOne(expression.parameter, ['scalar'], 'aggregation parameter')
      return
    case 'binary': {
      const { left, right, operator, isBool, matching } = expression
      const isSet = SET_OPERATORS.includes(operator)
      for (const side of [left, right]) {
        checkTypes(side)
        expectOne(side, isSet ? ['vector'] : ['scalar', 'vector'], 'binary expression')
      }
      const isComparison = COMPARISONS.includes(operator)
      if (isBool && !isComparison) throw fault('bool modifier can only be used on comparison operators')
      if (isComparison && !isBool && typeOf(expression) === 'scalar') {
        throw fault('comparisons between scalars must use BOOL modifier')
      }
      if (isSet && matching.many !== undefined) throw fault(`no grouping allowed for "${operator}" operation`)
      return
    }
    default:
      return
  }
}

function expectOne(expression: Expression, types: readonly ExpressionType[], where: string): void {
  const type = typeOf(expression)
  if (types.includes(type)) return
  throw fault(`expected type ${types.map(each => NAMES[each]).join(' or ')} in ${where}, got ${NAMES[type]}`)
}

function fault(message: string): PromqlError {
  return new PromqlError(`parse error: ${message}`)
}
