import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { MUTANTS, type Mutant } from '../support/chaos/mutants.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOT_COPIED = ['.git', '.local', 'node_modules']
/** Runs in which a change has to be found. */
const MOST_RUNS = 3
const MINUTES = process.env.CHAOS_MINUTES || '1'

it.each(MUTANTS)('faults find a service in which $name', async mutant => {
  const tree = await copyTree()
  try {
    await apply(mutant, tree)
    let { code, output } = await runFaultsIn(tree)
    // Each run has another seed. Few faults hit the moment that shows a change on a slow machine.
    for (let run = 1; code === 0 && run < MOST_RUNS; run++) ({ code, output } = await runFaultsIn(tree))
    const differences = output.split('\n').filter(line => mutant.shownBy.test(line))
    const printed = output.split('\n').filter(line => /^(process|server ) /.test(line))
    console.log(`${mutant.name}: ${printed.length} faults, ${differences.length} differences, for example`)
    console.log(differences.slice(0, 3).join('\n'))
    expect({ code, isFound: differences.length > 0 }, output).toEqual({ code: 1, isFound: true })
  } finally {
    await rm(tree, { recursive: true })
  }
})

async function copyTree(): Promise<string> {
  const tree = await mkdtemp(join(tmpdir(), 'penstock-mutant-'))
  await cp(ROOT, tree, { recursive: true, filter: path => !NOT_COPIED.includes(basename(path)) })
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** Changes the source. Fails if the product has changed so that the mutant has to change too. */
async function apply({ file, changes }: Mutant, tree: string): Promise<void> {
  let source = await readFile(join(tree, file), 'utf8')
  for (const [before, after] of changes) {
    expect(source.split(before).length - 1, `occurrences of "${before}" in ${file}`).toBe(1)
    source = source.replace(before, () => after)
  }
  await writeFile(join(tree, file), source)
}

async function runFaultsIn(tree: string): Promise<{ code: number; output: string }> {
  const config = 'test/support/setup/chaos-vitest.config.ts'
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--config', config, 'test/chaos/faults.test.ts'],
    { cwd: tree, env: { ...process.env, CHAOS_MINUTES: MINUTES, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = (await once(child, 'close')) as [number]
  return { code, output }
}
