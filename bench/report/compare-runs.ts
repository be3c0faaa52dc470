import { z } from 'zod'
import { figureText } from './figure-text.ts'
import type { BenchRun } from './report.ts'
import type { Summary } from './statistics.ts'
import { textTable } from './table.ts'

const summary = z.object({ median: z.number(), min: z.number(), max: z.number() })

/** The parts of a BenchRun that a comparison needs. */
const earlierRun = z.object({
  quick: z.boolean(),
  facts: z.record(z.string(), z.string()),
  scenarios: z.array(
    z.object({
      name: z.string(),
      rows: z.array(
        z.object({
          name: z.string(),
          unit: z.string(),
          value: summary,
          ratios: z.array(z.object({ to: z.string(), value: summary })),
        }),
      ),
    }),
  ),
})

/** An earlier run, read from its file. */
export type EarlierRun = z.infer<typeof earlierRun>

/** An earlier run, or the reason why its file cannot be read. */
type ReadRunResult = { readonly ok: true; readonly run: EarlierRun } | { readonly ok: false; readonly reason: string }

const VERSION: BenchRun['version'] = 1

/** Parses a run from the text of a file that `--json` wrote. */
export function readRun(text: string): ReadRunResult {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { ok: false, reason: `the file is not JSON (${(error as SyntaxError).message})` }
  }
  const version = z.object({ version: z.number() }).safeParse(json)
  if (!version.success) return { ok: false, reason: 'the file was not written by --json: it has no version' }
  if (version.data.version !== VERSION)
    return { ok: false, reason: `the file has version ${version.data.version}, and only ${VERSION} can be read` }
  const parsed = earlierRun.safeParse(json)
  if (parsed.success) return { ok: true, run: parsed.data }
  const [issue] = parsed.error.issues
  return { ok: false, reason: `the file was not written by --json: ${issue?.path.join('.')}: ${issue?.message}` }
}

/**
 * Formats the change of each figure and ratio that both runs have. A change whose ranges overlap is marked, because it may
 * be noise. Lists other differences of the runs first.
 */
export function renderComparison(run: BenchRun, before: EarlierRun): string {
  const old = figuresOf(before)
  const now = figuresOf(run)
  const rows = [...now].flatMap(([what, { value, unit }]) => {
    const was = old.get(what)
    if (was === undefined || was.unit !== unit) return []
    return [[what, figureText(was.value.median), figureText(value.median), unit, changeText(was.value, value)]]
  })
  const isNew = [...now.keys()].filter(what => !old.has(what))
  return [
    ...differences(run, before),
    ...(rows.length > 0 ? textTable({ head: ['', 'before', 'now', 'unit', 'change'], rows }) : ['  nothing in common']),
    ...(isNew.length > 0 ? [`  not in the earlier run: ${isNew.join('; ')}`] : []),
  ].join('\n')
}

interface Figure {
  readonly value: Summary
  readonly unit: string
}

function figuresOf({ scenarios }: EarlierRun | BenchRun): Map<string, Figure> {
  const figures = new Map<string, Figure>()
  for (const { name: scenario, rows } of scenarios) {
    for (const { name, value, unit, ratios } of rows) {
      figures.set(`${scenario}: ${name}`, { value, unit })
      for (const ratio of ratios)
        figures.set(`${scenario}: ${name} over ${ratio.to}`, { value: ratio.value, unit: '×' })
    }
  }
  return figures
}

function changeText(was: Summary, is: Summary): string {
  if (was.median === 0) return is.median === 0 ? 'none' : 'from nothing'
  const percent = (is.median / was.median - 1) * 100
  const overlaps = is.min <= was.max && was.min <= is.max
  return `${percent >= 0 ? '+' : ''}${percent.toFixed(1)} %${overlaps ? ' (ranges overlap)' : ''}`
}

/** Returns the differences that can explain more than a change of the code: a quick run, another machine. */
function differences(run: BenchRun, before: EarlierRun): string[] {
  const kind = (quick: boolean) => (quick ? 'quick' : 'full')
  return [
    ...(run.quick === before.quick ? [] : [`  run: ${kind(before.quick)} → ${kind(run.quick)}`]),
    ...Object.entries(run.facts)
      .filter(([name, value]) => before.facts[name] !== undefined && before.facts[name] !== value)
      .map(([name, value]) => `  ${name}: ${before.facts[name]} → ${value}`),
    '',
  ]
}
