import { invalid, type Outcome } from '../../http/outcome.ts'
import { goDurationNanos, type SpanCondition } from '../../traces/search/search-filter.ts'

type Conditions = Outcome<readonly SpanCondition[]>

/** Parts of a set of conditions in TraceQL: names with quotes, texts, operators, words. */
const TOKEN =
  /\s*(?:("(?:[^"\\]|\\.)*"|`[^`]*`)|(&&|\|\||[=!<>]=|=~|!~|[=<>{}()|])|((?:[A-Za-z_.][\w.:/-]*)(?:"(?:[^"\\]|\\.)*")?)|(-?\d[\w.µ]*))/y

const SERVICE = ['resource.service.name', '.service.name', 'service.name']
const HELP = 'docs/grafana.md lists what is'

/** Returns the conditions of TraceQL: one set in braces, whose conditions are joined with `&&`. */
export function parseTraceQl(query: string): Conditions {
  const tokens = tokensOf(query)
  if (tokens === undefined) return invalid('q is not TraceQL: it must be like { name = "GET /cart" && duration > 1s }')
  if (tokens[0] !== '{') return invalid('q must begin with "{"')
  const conditions: SpanCondition[] = []
  let at = 1
  while (tokens[at] !== '}') {
    if (tokens[at] === 'true') at++
    else {
      const [field = '', operator = '', value = ''] = tokens.slice(at, at + 3)
      const condition = conditionOf(field, operator, value)
      if (!condition.ok) return condition
      conditions.push(condition.value)
      at += 3
    }
    const next = tokens[at]
    if (next === '&&' && tokens[at + 1] !== '}') at++
    else if (next !== '}') return invalid(`${JSON.stringify(next ?? 'the end')} in q is not supported there: ${HELP}`)
  }
  if (at + 1 < tokens.length) {
    return invalid(`${JSON.stringify(tokens[at + 1])} after the first set of conditions of q is not supported: ${HELP}`)
  }
  return { ok: true, value: conditions }
}

function tokensOf(query: string): string[] | undefined {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  const text = query.trimEnd()
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text)
    if (found === null) return undefined
    tokens.push(found[0].trim())
  }
  return tokens
}

function conditionOf(field: string, operator: string, given: string): Outcome<SpanCondition> {
  const value = valueOfToken(given)
  if (value === undefined || !/^[A-Za-z_.]/.test(field)) {
    return invalid(`${JSON.stringify(`${field} ${operator} ${given}`.trim())} in q is not a condition: ${HELP}`)
  }
  if (field === 'duration' || field === 'span:duration') {
    const nanos = goDurationNanos(value)
    if (nanos === undefined) return invalid('duration in q must be compared with a duration, such as 100ms')
    if (operator === '>=' || operator === '>') {
      return { ok: true, value: { of: 'minDuration', nanos: operator === '>' ? nanos + 1n : nanos } }
    }
    return invalid(`duration ${operator} in q is not supported: ${HELP}`)
  }
  if (operator !== '=') return invalid(`the operator ${operator} of ${field} in q is not supported: ${HELP}`)
  if (SERVICE.includes(field)) return { ok: true, value: { of: 'service', value } }
  if (field === 'name' || field === 'span:name') return { ok: true, value: { of: 'name', value } }
  if (field === 'status' || field === 'span:status') return { ok: true, value: { of: 'status', value } }
  const attribute = /^(?:span)?\.(.+)$/.exec(field)?.[1]
  if (attribute === undefined) return invalid(`the field ${field} in q is not supported: ${HELP}`)
  const key = attribute.startsWith('"') ? (valueOfToken(attribute) ?? '') : attribute
  return { ok: true, value: { of: 'attribute', key, value } }
}

function valueOfToken(token: string): string | undefined {
  if (token.startsWith('`')) return token.slice(1, -1)
  if (token.startsWith('"')) return token.slice(1, -1).replaceAll(/\\(.)/g, '$1')
  return /^[\w.µ-]+$/.test(token) ? token : undefined
}

/** Returns the conditions of `tags`: keys and values in logfmt, such as `service.name=shop http.route="/cart item"`. */
export function parseTags(tags: string): Conditions {
  const conditions: SpanCondition[] = []
  const pair = /\s*([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)/y
  const text = tags.trimEnd()
  while (pair.lastIndex < text.length) {
    const found = pair.exec(text)
    if (found === null) return invalid('tags must be pairs such as service.name=shop, with spaces between them')
    const [, key = '', raw = ''] = found
    const value = raw.startsWith('"') ? raw.slice(1, -1).replaceAll(/\\(.)/g, '$1') : raw
    if (key === 'service.name') conditions.push({ of: 'service', value })
    else if (key === 'name' || key === 'status') conditions.push({ of: key, value })
    else if (key === 'error' && value === 'true') conditions.push({ of: 'status', value: 'error' })
    else conditions.push({ of: 'attribute', key, value })
  }
  return { ok: true, value: conditions }
}
