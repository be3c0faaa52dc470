/** An HTTPRoute of the Gateway API, as far as it is used here. */
export interface HttpRoute {
  readonly spec: { readonly rules: readonly Rule[] }
}
interface Rule {
  readonly matches: readonly Match[]
  readonly backendRefs: readonly { readonly name: string }[]
}
interface Match {
  readonly path: { readonly type: 'Exact' | 'PathPrefix'; readonly value: string }
  readonly method?: string
}

/**
 * Returns the backends of the rule that takes a request, by the precedence that the Gateway API requires: an exact path, then
 * the longest prefix, then a match with a method, then the first rule. Prefixes are compared by path elements.
 */
export function chooseBackend({ spec }: HttpRoute, method: string, path: string): readonly string[] {
  const candidates = spec.rules.flatMap(rule =>
    rule.matches.filter(match => takes(match, method, path)).map(match => ({ rule, match })),
  )
  const [best] = candidates.sort((a, b) => rankOf(b.match) - rankOf(a.match))
  return best?.rule.backendRefs.map(({ name }) => name) ?? []
}

function takes({ path, method }: Match, sentMethod: string, sentPath: string): boolean {
  if (method !== undefined && method !== sentMethod) return false
  if (path.type === 'Exact') return path.value === sentPath
  const prefix = path.value.replace(/\/$/, '')
  return sentPath === prefix || sentPath.startsWith(`${prefix}/`)
}

function rankOf({ path, method }: Match): number {
  return (path.type === 'Exact' ? 1e6 : 0) + path.value.length * 2 + (method === undefined ? 0 : 1)
}
