import { describe, expect, it } from 'vitest'
import { runScenario } from './run-scenario.ts'

/** A module of its own, without a file. */
function moduleOf(body: string): URL {
  const source = `export const scenario = { name: 'x', question: '?', async run({ quick, dir, progress, onEnd }) { ${body} } }`
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`)
}

function start(body: string) {
  const told: string[] = []
  const interruption = new AbortController()
  let onTold = () => {}
  const result = runScenario(
    moduleOf(body),
    true,
    text => {
      told.push(text)
      onTold()
    },
    interruption.signal,
  )
  const firstWord = new Promise<void>(resolve => {
    onTold = resolve
  })
  return { told, interruption, result, firstWord }
}

describe('a scenario in a process of its own', () => {
  it('gives its result after it has ended what it started, last first', async () => {
    const { told, result } = start(`
      onEnd(() => progress('first started'))
      onEnd(() => progress('last started'))
      return { rows: [{ name: 'quick', unit: 'times', samples: [Number(quick)] }] }`)
    expect(await result).toEqual({ rows: [{ name: 'quick', unit: 'times', samples: [1] }] })
    expect(told).toEqual(['last started', 'first started'])
  })

  it.each([
    ['throws', `throw new Error('the disk is full')`, /the disk is full/],
    ['ends by itself', 'process.exit(3)', /ended early \(3\)/],
  ])('fails when it %s', async (_what, body, message) => {
    await expect(start(body).result).rejects.toThrow(message)
  })

  it('ends what it has started when it is interrupted', async () => {
    const { told, interruption, result, firstWord } = start(`
      onEnd(() => progress('ended'))
      progress('running')
      await new Promise(resolve => setTimeout(resolve, 60_000))`)
    await firstWord
    interruption.abort()
    await expect(result).rejects.toThrow(/ended early \(130\)/)
    expect(told).toEqual(['running', 'ended'])
  })
})
