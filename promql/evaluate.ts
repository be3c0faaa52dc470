import { aggregate, byValue } from './aggregate.ts'
import { binary } from './binary.ts'
import {
  type CallExpression,
  type Expression,
  isRangeFunction,
  NAME_LABEL,
  type SelectorExpression,
} from './expression.ts'
import { histogramQuantile } from './histogram-quantile.ts'
import { LOOKBACK_MS, lastValues, overTime, type SampledSeries } from './over-time.ts'
import {
  EvaluationBudget,
  emptySeries,
  joinSameLabels,
  mapValues,
  type Series,
  type TimeGrid,
  type Value,
} from './vector.ts'

/** Times and samples of a query. */
interface Evaluation {
  readonly grid: TimeGrid
  /** Returns the samples of a selector of the query. */
  readonly samplesOf: (selector: SelectorExpression) => readonly SampledSeries[]
}

/** Returns the value of an expression at each time of the grid, as Prometheus defines it. Throws a PromqlError. */
export function evaluate(expression: Expression, evaluation: Evaluation): Value {
  return new Evaluator(evaluation).value(expression)
}

/** Functions of one number. */
const OF_NUMBER: Readonly<Record<string, (value: number) => number>> = {
  abs: Math.abs,
  ceil: Math.ceil,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log10: Math.log10,
  log2: Math.log2,
  sgn: Math.sign,
  sqrt: Math.sqrt,
}

class Evaluator {
  readonly #evaluation: Evaluation
  readonly #budget = new EvaluationBudget()

  constructor(evaluation: Evaluation) {
    this.#evaluation = evaluation
  }

  value(expression: Expression): Value {
    const { grid } = this.#evaluation
    switch (expression.kind) {
      case 'number':
        return { type: 'scalar', values: this.#scalar(() => expression.value) }
      case 'string':
        return { type: 'string', text: expression.text }
      case 'negation': {
        const of = this.value(expression.of)
        if (of.type === 'scalar') return { type: 'scalar', values: of.values.map(value => -value) }
        return this.#vector(mapValues(seriesOf(of), this.#budget, value => -value))
      }
      case 'selector': {
        const windows = { grid, offsetMs: expression.offsetMs, lengthMs: LOOKBACK_MS }
        return this.#vector(lastValues(this.#evaluation.samplesOf(expression), windows, this.#budget))
      }
      case 'call':
        return this.#call(expression)
      case 'aggregate': {
        const of = seriesOf(this.value(expression.of))
        const parameters = expression.parameter && scalarOf(this.value(expression.parameter))
        return this.#vector(aggregate(expression, of, parameters, grid.count, this.#budget))
      }
      case 'binary': {
        const result = binary(expression, this.value(expression.left), this.value(expression.right), this.#budget)
        return result.type === 'vector' ? this.#vector(joinSameLabels(result.series, this.#budget)) : result
      }
    }
  }

  #vector(series: readonly Series[]): Value {
    return { type: 'vector', series: series.filter(({ has }) => has.includes(1)) }
  }

  #scalar(valueAt: (step: number) => number): Float64Array {
    this.#budget.spend(this.#evaluation.grid.count)
    return Float64Array.from({ length: this.#evaluation.grid.count }, (_, step) => valueAt(step))
  }

  #call({ name, args }: CallExpression): Value {
    const { grid, samplesOf } = this.#evaluation
    const [first] = args
    if (isRangeFunction(name) && first?.kind === 'selector') {
      const windows = { grid, offsetMs: first.offsetMs, lengthMs: first.rangeMs as number }
      return this.#vector(overTime(name, samplesOf(first), windows, this.#budget))
    }
    if (name === 'absent') return this.#absent(first as Expression)
    const values = args.map(arg => this.value(arg))
    const [a, b] = values
    switch (name) {
      case 'time':
        return { type: 'scalar', values: this.#scalar(step => (grid.startMs + step * grid.stepMs) / 1_000) }
      case 'vector':
        return this.#vector([{ labels: new Map(), values: scalarOf(a), has: new Uint8Array(grid.count).fill(1) }])
      case 'scalar': {
        const series = seriesOf(a)
        this.#budget.spend(series.length * grid.count)
        const only = (step: number) => {
          const present = series.filter(({ has }) => has[step] === 1)
          return present.length === 1 ? (present[0]?.values[step] as number) : Number.NaN
        }
        return { type: 'scalar', values: this.#scalar(only) }
      }
      case 'histogram_quantile':
        return this.#vector(histogramQuantile(scalarOf(a), seriesOf(b), this.#budget))
      case 'sort':
      case 'sort_desc': {
        const sorted = seriesOf(a).toSorted((x, y) => byValue(x.values[0] as number, y.values[0] as number))
        // The order of a range of time is that of the labels.
        return this.#vector(grid.count > 1 ? seriesOf(a) : name === 'sort' ? sorted : sorted.reverse())
      }
      default:
        return this.#vector(mapValues(seriesOf(a), this.#budget, changeOf(name, b)))
    }
  }

  /** A series with the labels that the selector requires, at the times at which it selects nothing. */
  #absent(of: Expression): Value {
    const { grid } = this.#evaluation
    const series = seriesOf(this.value(of))
    const required = of.kind === 'selector' ? of.matchers.filter(({ operator }) => operator === '=') : []
    const counts = new Map<string, number>()
    for (const { label } of of.kind === 'selector' ? of.matchers : []) counts.set(label, (counts.get(label) ?? 0) + 1)
    const labels = required
      .filter(({ label, value }) => label !== NAME_LABEL && value !== '' && counts.get(label) === 1)
      .map(({ label, value }) => [label, value] as const)
    const result = emptySeries(new Map(labels), grid.count)
    this.#budget.spend(grid.count * (1 + series.length))
    for (let step = 0; step < grid.count; step++) {
      if (series.some(({ has }) => has[step] === 1)) continue
      result.has[step] = 1
      result.values[step] = 1
    }
    return this.#vector([result])
  }
}

/** Returns a function of a value and, for some, of scalars at the same time. */
function changeOf(name: string, b: Value | undefined): (value: number, step: number) => number {
  const ofNumber = OF_NUMBER[name]
  if (ofNumber !== undefined) return ofNumber
  const bs = b && scalarOf(b)
  switch (name) {
    case 'clamp_max':
      return (value, step) => Math.min(value, bs?.[step] as number)
    case 'clamp_min':
      return (value, step) => Math.max(value, bs?.[step] as number)
    case 'round':
      // As Prometheus does it: the inverse is more exact for fractions such as 0.1.
      return (value, step) => {
        const inverse = 1 / (bs?.[step] ?? 1)
        return Math.floor(value * inverse + 0.5) / inverse
      }
    default:
      throw new TypeError(`no function is called ${name}`)
  }
}

function scalarOf(value: Value | undefined): Float64Array {
  if (value?.type !== 'scalar') throw new TypeError('an argument is not a scalar')
  return value.values
}

function seriesOf(value: Value | undefined): readonly Series[] {
  if (value?.type !== 'vector') throw new TypeError('an argument is not a vector')
  return value.series
}
