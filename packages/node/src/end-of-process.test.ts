import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

const MODULE = pathToFileURL(join(import.meta.dirname, 'end-of-process.ts')).href
const SIGNAL_EXIT = pathToFileURL(createRequire(import.meta.url).resolve('signal-exit')).href

/** Runs a program that watches its end, sends it the signal once it is ready, and returns how it has ended. */
async function run(program: string, signal?: NodeJS.Signals) {
  const source = `
    import { watchEnd, watchSignals } from ${JSON.stringify(MODULE)}
    import { writeSync } from 'node:fs'
    const say = text => writeSync(1, text + '\\n')
    const ready = () => { say('ready'); setInterval(() => {}, 60_000) }
    const ending = { prepare: async () => say('prepare'), send: () => say('send') }
    watchEnd(ending)
    watchSignals(ending)
    ${program}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const output = text(child.stdout)
  if (signal !== undefined) {
    await once(child.stdout, 'data')
    child.kill(signal)
  }
  const [code, by] = await once(child, 'exit')
  return {
    lines: (await output)
      .trim()
      .split('\n')
      .filter(line => line !== 'ready'),
    code,
    by,
  }
}

describe('a process', () => {
  it('sends at its end, after the event loop was used once', async () => {
    expect(await run('')).toEqual({ lines: ['prepare', 'send'], code: 0, by: null })
    const again = "process.once('beforeExit', () => setTimeout(() => say('more'), 1))"
    expect(await run(again)).toEqual({ lines: ['prepare', 'more', 'send'], code: 0, by: null })
  })

  it('sends when it exits at once or fails, with the same code', async () => {
    expect(await run('process.exit(7)')).toEqual({ lines: ['send'], code: 7, by: null })
    const failing = "process.on('uncaughtExceptionMonitor', () => say('monitor')); null.x"
    expect(await run(failing)).toEqual({ lines: ['monitor', 'send'], code: 1, by: null })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('that does not listen for %s ends by it', async signal => {
    expect(await run('ready()', signal)).toEqual({ lines: ['prepare', 'send'], code: null, by: signal })
  })

  it('that listens decides itself', async () => {
    const exiting = "process.on('SIGTERM', () => { say('mine'); process.exit(4) }); ready()"
    expect(await run(exiting, 'SIGTERM')).toEqual({ lines: ['mine', 'send'], code: 4, by: null })
    const ignoring = "process.on('SIGTERM', () => setTimeout(() => process.exit(5), 50)); ready()"
    expect(await run(ignoring, 'SIGTERM')).toEqual({ lines: ['send'], code: 5, by: null })
  })

  it('finds its own listeners alone, and ends by the signal after they were removed', async () => {
    const counting = `
      const own = () => {}
      process.on('SIGTERM', own)
      say(String(process.listenerCount('SIGTERM')))
      process.removeListener('SIGTERM', own)
      process.kill(process.pid, 'SIGTERM')
      setInterval(() => {}, 60_000)`
    expect(await run(counting)).toEqual({ lines: ['1', 'prepare', 'send'], code: null, by: 'SIGTERM' })
  })

  it('ends by the signal where a library counts the listeners and sends it again', async () => {
    const library = `const { onExit } = await import(${JSON.stringify(SIGNAL_EXIT)}); onExit(() => say('library')); ready()`
    expect(await run(library, 'SIGTERM')).toEqual({ lines: ['library', 'prepare', 'send'], code: null, by: 'SIGTERM' })
  })
})
