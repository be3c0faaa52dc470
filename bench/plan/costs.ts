import { z } from 'zod'
import { type MeasuredPoint, measuredPointSchema } from './measured-point.ts'

/** A measured point with its name in the scenario `scale`. */
export interface NamedPoint extends MeasuredPoint {
  readonly name: string
}

/** Measured costs, and where they come from. */
export interface Costs {
  readonly points: readonly NamedPoint[]
  /** Commit, date and machine of the run, and how fast the machine was. */
  readonly source: string
  /** Why the figures should not be relied on. Empty if there is no reason. */
  readonly doubts: readonly string[]
}

/** Costs, or the reason why the file cannot be used. */
type ReadCostsResult = { readonly ok: true; readonly costs: Costs } | { readonly ok: false; readonly reason: string }

const calibration = z.object({ oneCore: z.number(), allCores: z.number(), fsyncP50Ms: z.number() })

/** The parts of the file of `npm run bench -- scale --json` that a plan needs. */
const runSchema = z.object({
  version: z.literal(1),
  quick: z.boolean(),
  facts: z.record(z.string(), z.string()),
  scenarios: z.array(
    z.object({
      name: z.string(),
      failures: z.array(z.string()),
      machine: z.object({ before: calibration, void: z.array(z.string()) }).optional(),
      rows: z.array(z.object({ name: z.string(), figures: z.unknown().optional() })),
    }),
  ),
})

/** Reads the file that `npm run bench -- scale --json FILE` writes. */
export function readCosts(text: string): ReadCostsResult {
  const run = runSchema.safeParse(parsed(text))
  if (!run.success) return { ok: false, reason: 'it was not written by "npm run bench -- scale --json FILE"' }
  const { quick, facts, scenarios } = run.data
  const scale = scenarios.find(({ name }) => name === 'scale')
  if (scale === undefined) return { ok: false, reason: 'it does not have the scenario "scale"' }
  const points: NamedPoint[] = []
  for (const { name, figures } of scale.rows) {
    if (figures === undefined) continue
    const point = measuredPointSchema.safeParse(figures)
    if (!point.success) return { ok: false, reason: `its row "${name}" is incomplete: measure the scenario again` }
    points.push({ name, ...point.data })
  }
  const missing = missingPoints(points)
  if (missing.length > 0) return { ok: false, reason: `it was not measured with ${missing.join(', ')}` }
  const doubts = [
    ...(quick ? ['it was a quick run, whose figures are not for quoting'] : []),
    ...(scale.machine?.void ?? []),
    ...scale.failures.map(failure => `a round failed: ${failure}`),
  ]
  return { ok: true, costs: { points, source: sourceOf(facts, scale.machine?.before), doubts } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Spans in the payloads of all points that differ in something else. */
export const USUAL_PAYLOAD = 200

/** Returns whether a point has the usual payloads, so that only its fleet differs from that of the others. */
export const isUsualLoad = ({ spansPerPayload, realistic, gzip }: MeasuredPoint) =>
  spansPerPayload === USUAL_PAYLOAD && realistic === 0 && gzip === 0

function missingPoints(points: readonly MeasuredPoint[]): string[] {
  const needed: [string, (point: MeasuredPoint) => boolean][] = [
    ['one worker', point => point.workers === 1 && isUsualLoad(point)],
    ['realistic spans', ({ realistic, gzip }) => realistic === 1 && gzip === 0],
    ['realistic spans as gzip', ({ realistic, gzip }) => realistic === 1 && gzip === 1],
  ]
  return needed.flatMap(([name, is]) => (points.some(is) ? [] : [name]))
}

function sourceOf(facts: Readonly<Record<string, string>>, machine: z.infer<typeof calibration> | undefined): string {
  const speed = machine
    ? `${Math.round(machine.oneCore)} turns/s on one core, ${Math.round(machine.allCores)} on all, fsync ${machine.fsyncP50Ms.toFixed(2)} ms`
    : 'not calibrated'
  return `commit ${facts.Commit ?? 'unknown'}, ${facts.Date ?? 'unknown date'}, ${facts.CPU ?? 'unknown CPU'} (${speed})`
}
