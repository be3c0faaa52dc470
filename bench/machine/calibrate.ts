import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { percentile } from '../report/statistics.ts'
import { timeSyncs } from './disk.ts'

/** Speed of the machine, measured with fixed work in about two seconds. */
export interface Calibration {
  /** Turns of a fixed computation a second, on one core and on all cores at once. */
  readonly oneCore: number
  readonly allCores: number
  /** Write and fsync of 4 KiB where the servers have their data. */
  readonly fsyncP50Ms: number
  readonly fsyncP99Ms: number
}

const COMPUTE_MS = 400
const SYNCS = 200
const WORKER = new URL('calibration-worker.ts', import.meta.url)

/** Measures the machine. `dir` is on the disk of the servers' data. Nothing else of the bench may run. */
export async function calibrate(dir: string): Promise<Calibration> {
  const oneCore = await compute(1)
  const allCores = await compute(availableParallelism())
  const syncs = await timeSyncs(dir, SYNCS)
  return {
    oneCore,
    allCores,
    fsyncP50Ms: percentile(syncs, 0.5),
    fsyncP99Ms: percentile(syncs, 0.99),
  }
}

/** Returns the turns a second of this many threads together. */
async function compute(threads: number): Promise<number> {
  const rates = await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = new Worker(WORKER, { workerData: COMPUTE_MS })
      const [rate] = (await once(worker, 'message')) as [number]
      await worker.terminate()
      return rate
    }),
  )
  return rates.reduce((sum, rate) => sum + rate, 0)
}

/** Returns the CPU time of the machine so far, and the part that the host gave to others. Both 0 without /proc. */
export function readSteal(): { readonly total: number; readonly steal: number } {
  if (process.platform !== 'linux') return { total: 0, steal: 0 }
  // proc(5): user, nice, system, idle, iowait, irq, softirq, steal. Guest time is part of user.
  const fields = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]?.split(/\s+/).slice(1, 9).map(Number) ?? []
  return { total: fields.reduce((sum, field) => sum + field, 0), steal: fields[7] ?? 0 }
}

/** Figures that must be the same before and after a scenario, and the change that is noise, however large its share is. */
const COMPARED = [
  { figure: 'oneCore', name: 'one core', noise: 0 },
  { figure: 'allCores', name: 'all cores', noise: 0 },
  { figure: 'fsyncP50Ms', name: 'fsync p50', noise: 0.1 },
] as const

/** The largest change of a figure, as a share of the smaller one. */
const MOST_CHANGE = 0.15
/** The largest share of the CPU time that the host may take. */
const MOST_STEAL = 0.02

/** Returns why the figures of a scenario are void: the machine changed meanwhile. Empty if it did not. */
export function voidReasons(before: Calibration, after: Calibration, stealShare: number): string[] {
  const changed = COMPARED.flatMap(({ figure, name, noise }) => {
    const [was, is] = [before[figure], after[figure]]
    const change = Math.abs(is - was)
    if (change <= noise || change / Math.min(was, is) <= MOST_CHANGE) return []
    return [`${name} changed by ${Math.round(((is - was) / was) * 100)} %`]
  })
  if (stealShare > MOST_STEAL) changed.push(`the host took ${(stealShare * 100).toFixed(1)} % of the CPU time`)
  return changed
}

/** Formats the figures of a calibration, before and after. */
export function calibrationText(before: Calibration, after: Calibration, stealShare: number): string {
  const turns = (of: 'oneCore' | 'allCores') => `${Math.round(before[of])} → ${Math.round(after[of])} turns/s`
  const syncs = [before, after].map(one => `${one.fsyncP50Ms.toFixed(2)} / ${one.fsyncP99Ms.toFixed(2)}`)
  return `one core ${turns('oneCore')}, all cores ${turns('allCores')}, fsync p50 / p99 ${syncs.join(' → ')} ms, steal ${(stealShare * 100).toFixed(1)} %`
}
