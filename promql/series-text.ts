import { NAME_LABEL } from './expression.ts'
import type { Labels } from './vector.ts'

/** Returns a series as PromQL selects it: `up{"service.name"="shop"}`, labels in their order. */
export function seriesText(labels: Labels): string {
  const named = [...labels].filter(([label]) => label !== NAME_LABEL).sort(([a], [b]) => (a < b ? -1 : 1))
  const matchers = named.map(([label, value]) => `${nameText(label)}=${JSON.stringify(value)}`)
  const name = labels.get(NAME_LABEL) ?? ''
  if (name !== '' && !isPlain(name)) return `{${[JSON.stringify(name), ...matchers].join(', ')}}`
  return matchers.length === 0 && name !== '' ? name : `${name}{${matchers.join(', ')}}`
}

const isPlain = (name: string) => /^[A-Za-z_]\w*$/.test(name)
const nameText = (label: string) => (isPlain(label) ? label : JSON.stringify(label))
