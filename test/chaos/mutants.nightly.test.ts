import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { MUTANTS } from '../support/chaos/mutants.ts'
import { changedTree } from '../support/chaos/product-tree.ts'

/** Runs in which a change has to be found. */
const MOST_RUNS = 3
const MINUTES = process.env.CHAOS_MINUTES || '1'

it.each(MUTANTS)('faults find a service in which $name', async mutant => {
  const { path: tree, remove } = await changedTree(mutant)
  try {
    let { code, output } = await runFaultsIn(tree)
    // Each run has another seed. Few faults hit the moment that shows a change on a slow machine.
    for (let run = 1; code === 0 && run < MOST_RUNS; run++) ({ code, output } = await runFaultsIn(tree))
    const differences = output.split('\n').filter(line => mutant.shownBy.test(line))
    const printed = output.split('\n').filter(line => /^(process|server ) /.test(line))
    console.log(`${mutant.name}: ${printed.length} faults, ${differences.length} differences, for example`)
    console.log(differences.slice(0, 3).join('\n'))
    expect({ code, isFound: differences.length > 0 }, output).toEqual({ code: 1, isFound: true })
  } finally {
    await remove()
  }
})

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
