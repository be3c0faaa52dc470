import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { ROOT } from './prose.ts'

const read = (path: string) => readFileSync(ROOT + path, 'utf8')
const RULES = read('deploy/prometheus/penstock.rules.yml')
const RUNBOOK = read('docs/runbook.md')
const DASHBOARDS = 'deploy/grafana/dashboards'

function all(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(match => match[1] ?? '')
}

it('every alert has its section of the runbook, and every section its alert', () => {
  const alerts = all(RULES, /- alert: (\w+)/g)
  expect(alerts.length).toBeGreaterThan(15)
  const page = 'http://127.0.0.1:4300/console/runbook'
  expect(all(RULES, /runbook_url: (\S+)/g)).toEqual(alerts.map(name => `${page}#${name.toLowerCase()}`))
  expect(all(RUNBOOK, /^### (\w+)$/gm).sort()).toEqual(alerts.toSorted())
  expect(all(RUNBOOK, /^<a id="(\w+)"><\/a>$/gm).sort()).toEqual(alerts.map(name => name.toLowerCase()).sort())
})

it('every rule keeps installations apart', () => {
  const groupings = all(RULES, /\bby \(([^)]*)\)/g)
  expect(groupings.length).toBeGreaterThan(40)
  expect(groupings.filter(labels => !/\bcluster, namespace\b/.test(labels))).toEqual([])
  const expressions = all(RULES, /^ +expr: (.*)$/gm)
  const aggregation = /\b(sum|min|max|avg|count|group|topk)\b(?! by \()/
  expect(expressions.filter(expr => aggregation.test(expr) || /\bwithout\b/.test(expr))).toEqual([])
})

it('every section of the runbook has signs, what to look at, what to do, and when it ends', () => {
  for (const section of RUNBOOK.split(/^### /m).slice(1)) {
    const parts = all(section, /^- \*\*([\w ]+)\*\*/gm)
    expect(parts, section.slice(0, 40)).toEqual(['Signs', 'Look at', 'Do', 'Ends'])
  }
})

it('every link within the runbook leads to one of its sections', () => {
  const anchors = new Set(all(RUNBOOK, /<a id="(\w+)"/g))
  expect(all(RUNBOOK, /\]\(#(\w+)\)/g).filter(anchor => !anchors.has(anchor))).toEqual([])
})

const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal(`\${datasource}`) })
const gridPos = z.strictObject({ x: z.int().min(0), y: z.int().min(0), w: z.int().min(1).max(24), h: z.int().min(1) })
const row = z.looseObject({
  id: z.int(),
  type: z.literal('row'),
  title: z.string().min(1),
  gridPos,
  panels: z.tuple([]),
})
const target = z.looseObject({
  refId: z.string().regex(/^[A-Z]$/),
  datasource,
  expr: z.string().min(1),
  legendFormat: z.string().min(1),
})
const graph = z.looseObject({
  id: z.int(),
  type: z.enum(['timeseries', 'stat', 'table']),
  title: z.string().min(1),
  datasource,
  gridPos,
  fieldConfig: z.looseObject({ defaults: z.looseObject({ unit: z.string().min(1) }), overrides: z.array(z.unknown()) }),
  options: z.looseObject({}),
  targets: z.array(target).min(1),
})
function variable(name?: string) {
  const named = name === undefined ? z.enum(['job', 'instance']) : z.literal(name)
  const definition = z.string().startsWith('label_values(penstock_build_info')
  return z.looseObject({ name: named, type: z.literal('query'), datasource, definition })
}
/** The part of the schema of Grafana's dashboards (version 38) that these use. */
const dashboardSchema = z.looseObject({
  uid: z.string().regex(/^penstock-[a-z]+$/),
  title: z.string().startsWith('Penstock: '),
  schemaVersion: z.literal(38),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  templating: z.strictObject({
    list: z.tuple(
      [
        z.looseObject({ name: z.literal('datasource'), type: z.literal('datasource'), query: z.literal('prometheus') }),
        variable('cluster'),
        variable('namespace'),
      ],
      variable(),
    ),
  }),
  annotations: z.strictObject({
    list: z.tuple([z.looseObject({ datasource, target: z.looseObject({ expr: z.string() }) })]),
  }),
  panels: z.array(z.union([row, graph])).min(1),
})

it.each(readdirSync(ROOT + DASHBOARDS))(
  '%s is a dashboard whose panels have a source, queries, a unit and a place',
  file => {
    const dashboard = dashboardSchema.parse(JSON.parse(read(`${DASHBOARDS}/${file}`)))
    expect(`${dashboard.uid}.json`).toBe(file)
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [i, a] of dashboard.panels.entries()) {
      for (const b of dashboard.panels.slice(i + 1)) {
        const [p, q] = [a.gridPos, b.gridPos]
        const isApart = p.x + p.w <= q.x || q.x + q.w <= p.x || p.y + p.h <= q.y || q.y + q.h <= p.y
        expect(isApart, `${a.title} and ${b.title} overlap`).toBe(true)
      }
    }
  },
)

/** A metric with its labels. */
const SELECTOR = /\b(?:(?:penstock|process|nodejs)_\w+|up|ALERTS)\{([^}]*)\}/g

it.each(readdirSync(ROOT + DASHBOARDS))('%s has every variable in each query, and hides no absence', file => {
  const { panels, templating } = dashboardSchema.parse(JSON.parse(read(`${DASHBOARDS}/${file}`)))
  const names = templating.list.map(({ name }) => name).filter(name => name !== 'datasource')
  for (const { expr } of panels.flatMap(panel => (panel.type === 'row' ? [] : graph.parse(panel).targets))) {
    const metrics = expr.match(/\b(?:penstock|process|nodejs)_\w+|\bup\b|\bALERTS\b/g) ?? []
    const selectors = all(expr, SELECTOR)
    expect(selectors.length, expr).toBe(metrics.length)
    // Alerts have the labels of their rules: most have no process.
    const used = expr.startsWith('ALERTS') || expr.startsWith('count(ALERTS') ? ['cluster', 'namespace'] : names
    for (const labels of selectors) for (const name of used) expect(labels, expr).toContain(`$${name}`)
    expect(expr).not.toContain('vector(')
  }
})
