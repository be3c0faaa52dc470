import { describe, expect, it } from 'vitest'
import { runScenario } from './run-scenario.ts'

/** Returns a scenario module as a data URL. */
function moduleOf(body: string): URL {
  const source = `export const scenario = { name: 'x', question: '?', async run({ quick, dir, progress, failed, onEnd }) { ${body} } }`
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`)
}

function start(body: string) {
  const messages: string[] = []
  const interruption = new AbortController()
  let onMessage = () => {}
  const result = runScenario(
    moduleOf(body),
    { quick: true, sustainedMinutes: 0 },
    text => {
      messages.push(text)
      onMessage()
    },
    interruption.signal,
  )
  const firstWord = new Promise<void>(resolve => {
    onMessage = resolve
  })
  return { messages, interruption, result, firstWord }
}

describe('runScenario', () => {
  it('returns the result after the end steps ran, last step first', async () => {
    const { messages, result } = start(`
      onEnd(() => progress('first started'))
      onEnd(() => progress('last started'))
      return { rows: [{ name: 'quick', unit: 'times', samples: [Number(quick)] }] }`)
    expect(await result).toEqual({ rows: [{ name: 'quick', unit: 'times', samples: [1] }], failures: [] })
    expect(messages).toEqual(['last started', 'first started'])
  })

  it('returns the rounds that failed with the rows of the others', async () => {
    const { messages, result } = start(`
      failed('logs, round 2/3: 503')
      return { rows: [{ name: 'logs', unit: 's', samples: [1, null, 3] }] }`)
    expect(await result).toEqual({
      rows: [{ name: 'logs', unit: 's', samples: [1, null, 3] }],
      failures: ['logs, round 2/3: 503'],
    })
    expect(messages).toEqual(['FAILED: logs, round 2/3: 503'])
  })

  it.each([
    ['throws', `throw new Error('the disk is full')`, /the disk is full/],
    ['exits', 'process.exit(3)', /ended early \(3\)/],
  ])('rejects when the scenario %s', async (_what, body, message) => {
    await expect(start(body).result).rejects.toThrow(message)
  })

  it('runs the end steps when it is interrupted', async () => {
    const { messages, interruption, result, firstWord } = start(`
      onEnd(() => progress('ended'))
      progress('running')
      await new Promise(resolve => setTimeout(resolve, 60_000))`)
    await firstWord
    interruption.abort()
    await expect(result).rejects.toThrow(/ended early \(130\)/)
    expect(messages).toEqual(['running', 'ended'])
  })
})
