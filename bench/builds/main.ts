import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { MIB } from '../../schemas/units.ts'
import { BUILD_WITH, type BundlerName } from '../../test/support/bundlers/build-with.ts'
import { writeApp } from '../../test/support/bundlers/write-app.ts'
import { startStack } from '../../test/support/services/stack.ts'
import { until } from '../../test/support/until.ts'
import type { BuildFigures } from './build-once.ts'

/**
 * Builds an application of 3,000 modules with each bundler: with the plugin after a change, with it again, and without it. Prints
 * the times of the fastest build, and memory. Arguments: rounds, and the names of bundlers; by default seven rounds of all.
 */
const MODULES = 3_000
/** Figures of a build, with the CPU time of all its processes. */
interface Measured extends BuildFigures {
  readonly cpuMs: number
}

const BUILD_ONCE = join(import.meta.dirname, 'build-once.ts')
const run = promisify(execFile)
/** The further modules of the tree, whose root is replaced in each round so that its map changes. */
const IMPORTS = `import { total as total1 } from "./module-1.js"\nimport { total as total2 } from "./module-2.js"\n`

const [rounds = '7', ...named] = process.argv.slice(2)
const bundlers = (named.length > 0 ? named : Object.keys(BUILD_WITH)) as BundlerName[]
const root = await mkdtemp(join(tmpdir(), 'penstock-builds-'))
const stack = await startStack()
const service = { url: stack.ingestUrl, key: stack.secrets.secretKey }

try {
  await run(process.execPath, ['../pack.ts'], { cwd: join(import.meta.dirname, '../../packages/build') })
  await writeApp(root, MODULES)
  console.log(
    'bundler   ms   changed (sent)   again (sent)   ratio: again, changed   CPU ms, ratios   MB: without, again, changed',
  )
  for (const bundler of bundlers) await measure(bundler)
} finally {
  await stack.stop()
  await rm(root, { recursive: true, force: true })
}

async function measure(bundler: BundlerName): Promise<void> {
  const without: Measured[] = []
  const changed: Measured[] = []
  const again: Measured[] = []
  for (let round = 0; round < Number(rounds); round++) {
    await writeFile(
      join(root, 'src/modules/module-0.js'),
      `${IMPORTS}export const total = rows => total1(rows) + total2(rows) + ${Date.now()}\n`,
    )
    const penstock = { ...service, version: `${bundler}-${round}` }
    changed.push(await build(bundler, penstock))
    const rest = [
      async () => without.push(await build(bundler)),
      async () => again.push(await build(bundler, penstock)),
    ]
    for (const run of round % 2 === 0 ? rest : rest.toReversed()) await run()
  }
  const ratio = (figures: Measured[], of: 'ms' | 'cpuMs') => (least(figures, of) / least(without, of)).toFixed(3)
  const phases = again.at(-1)?.report?.timings
  console.log(
    bundler.padEnd(9),
    least(without, 'ms').toFixed(0).padStart(8),
    `${least(changed, 'ms').toFixed(0)} (${sentMib(changed)} MiB)`.padStart(17),
    `${least(again, 'ms').toFixed(0)} (${sentMib(again)} MiB)`.padStart(17),
    `${ratio(again, 'ms')} ${ratio(changed, 'ms')}`.padStart(13),
    `${least(without, 'cpuMs').toFixed(0)} ${ratio(again, 'cpuMs')} ${ratio(changed, 'cpuMs')}`.padStart(20),
    `${peakMb(without)} ${peakMb(again)} ${peakMb(changed)}`.padStart(18),
    JSON.stringify(phases),
  )
}

async function build(bundler: BundlerName, options?: object): Promise<Measured> {
  const directory = join(root, 'dist', bundler)
  await rm(directory, { recursive: true, force: true })
  // The service works on the maps of the build before this one, on the same processors.
  await until('the machine is quiet', isQuiet, { deadlineMs: 60_000 })
  const args = [BUILD_ONCE, bundler, root, directory, ...(options ? [JSON.stringify(options)] : [])]
  // The time of a shell includes the processes that a bundler starts.
  const timed = ['-c', 'TIMEFORMAT="%U %S"; time "$@"', 'bash', process.execPath, ...args]
  const { stdout, stderr } = await run('bash', timed, { maxBuffer: MIB })
  const [user, system] = (stderr.trim().split('\n').at(-1) ?? '').split(' ')
  const figures: Measured = { ...JSON.parse(stdout), cpuMs: (Number(user) + Number(system)) * 1_000 }
  if (options && figures.report?.result !== 'ok') throw new Error(`${bundler}: ${figures.report?.message}`)
  return figures
}

/** Returns whether all processors together have worked for at most a tenth of a second in half of one. */
async function isQuiet(): Promise<boolean> {
  const before = busyMs()
  await delay(500)
  return busyMs() - before <= 100
}

function busyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys, 0)
}

/** Returns the figure of the fastest build. The same build takes up to a third longer at times, but never less. */
function least(figures: readonly Measured[], of: 'ms' | 'cpuMs'): number {
  return Math.min(...figures.map(figure => figure[of]))
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function sentMib(figures: readonly BuildFigures[]): string {
  return (median(figures.map(({ report }) => report?.sentBytes ?? 0)) / MIB).toFixed(1)
}

function peakMb(figures: readonly BuildFigures[]): string {
  return (median(figures.map(({ peakBytes }) => peakBytes)) / 1e6).toFixed(0)
}
