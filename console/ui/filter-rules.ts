/** What a filter accepts. */
interface FilterRule {
  /** Returns why a text is not accepted, as a sentence for the field. */
  readonly faultOf: (text: string) => string | undefined
  /** Returns the text as the API compares it. */
  readonly normalOf?: (text: string) => string
}

/** Rules of filters by their parameters. A filter without one accepts any text. */
export type FilterRules = Readonly<Record<string, FilterRule>>

const QUOTED_CHARACTERS = 40
const quoted = (text: string) => `"${text.length > QUOTED_CHARACTERS ? `${text.slice(0, QUOTED_CHARACTERS)}…` : text}"`

/** `key=value`. The first `=` ends the key. */
const ATTRIBUTE: FilterRule = {
  faultOf: text => {
    if (text.startsWith('=')) return `${quoted(text)} needs a key before "=": write http.route=/cart.`
    return text.includes('=') ? undefined : `${quoted(text)} needs a value: write ${text.slice(0, 60)}=value.`
  },
}

const PAIRS_MAX = 8

/** `key=value, key=value`. */
export const PAIRS: FilterRule = {
  faultOf: text => {
    const parts = text.split(',').filter(part => part.trim() !== '')
    if (parts.length > PAIRS_MAX) return `There can be at most ${PAIRS_MAX} labels.`
    return parts.map(part => ATTRIBUTE.faultOf(part.trim())).find(fault => fault !== undefined)
  },
}

const idOf = (name: string, ...lengths: readonly number[]): FilterRule => ({
  normalOf: text => text.trim().toLowerCase(),
  faultOf: text => {
    if (!/^[0-9a-f]*$/.test(text)) return `A ${name} id has only hex digits: 0 to 9 and a to f.`
    if (!lengths.includes(text.length)) return `A ${name} id has ${lengths[0]} hex digits, this has ${text.length}.`
    return /[^0]/.test(text) ? undefined : `A ${name} id cannot consist of zeros.`
  },
})

/** The id of a trace. One of 64 bits may have 16 digits. */
export const TRACE_ID = idOf('trace', 32, 16)
/** The id of a span. */
export const SPAN_ID = idOf('span', 16)

const MILLISECONDS_MAX = 604_800_000

/** A duration in milliseconds, at most a week. */
export const MILLISECONDS: FilterRule = {
  normalOf: text => text.trim(),
  faultOf: text => {
    if (!/^\d+$/.test(text)) return `${quoted(text)} is not a whole number of milliseconds: write 300.`
    return Number(text) <= MILLISECONDS_MAX ? undefined : `At most ${MILLISECONDS_MAX} ms: a week.`
  },
}

const WORDS_MAX = 8
const WORD = /[0-9a-z\u0080-\uffff]+/g

/** Words that are searched in bodies of log records. */
export const WORDS: FilterRule = {
  faultOf: text => {
    const count = new Set(text.toLowerCase().match(WORD)).size
    if (count === 0) return `${quoted(text)} has no word: a word consists of letters and digits.`
    return count <= WORDS_MAX ? undefined : `At most ${WORDS_MAX} words are searched, these are ${count}.`
  },
}

/** Returns the rule of a choice, which only an address can break. Its filter then shows the first option. */
export const choiceOf = (options: readonly (readonly [value: string, text: string])[]): FilterRule => ({
  faultOf: text => (options.some(([value]) => value === text) ? undefined : `${quoted(text)} is not a choice.`),
})

/** Returns a query without the parameters that break their rules. Their fields state why, and the list stays as it is. */
export function validQuery(query: URLSearchParams, rules: FilterRules): URLSearchParams {
  const isValid = ([name, text]: readonly [string, string]) => text === '' || faultIn(rules[name], text) === undefined
  return new URLSearchParams([...query].filter(isValid))
}

/** Returns why a rule does not accept a text, if it does not. */
export function faultIn(rule: FilterRule | undefined, text: string): string | undefined {
  return text === '' ? undefined : rule?.faultOf(rule.normalOf?.(text) ?? text)
}
