import { afterEach, describe, expect, it } from 'vitest'
import { exceptionAttributes } from './exceptions.ts'

afterEach(() => {
  delete (globalThis as { _penstockDebugIds?: unknown })._penstockDebugIds
})

describe('the attributes of what was thrown', () => {
  it('are those of OpenTelemetry, with the stacks of all causes', () => {
    const root = new TypeError('no price')
    const found = exceptionAttributes(new Error('no quote', { cause: new RangeError('17', { cause: root }) }))
    expect(found).toMatchObject({ 'exception.type': 'Error', 'exception.message': 'no quote' })
    const lines = String(found['exception.stacktrace']).split('\n')
    expect(lines.filter(line => !line.startsWith('    at '))).toEqual([
      'Error: no quote',
      'Caused by: RangeError: 17',
      'Caused by: TypeError: no price',
    ])
  })

  it('end with a cycle, and include the members of an AggregateError', () => {
    const cyclic = new Error('a')
    cyclic.cause = new AggregateError([new Error('b'), cyclic], 'several')
    expect(String(exceptionAttributes(cyclic)['exception.stacktrace']).match(/Caused by: \S+ \S+/g)).toEqual([
      'Caused by: AggregateError: several',
      'Caused by: Error: b',
    ])
  })

  it.each<[unknown, string, string]>([
    ['text', 'string', 'text'],
    [undefined, 'undefined', 'undefined'],
    [null, 'null', 'null'],
    [{ code: 7 }, 'Object', '{"code":7}'],
    [Object.create(null), 'Object', '{}'],
    [10n, 'bigint', '10'],
  ])('describe %s, which is not an error', (thrown, type, message) => {
    expect(exceptionAttributes(thrown)).toEqual({ 'exception.type': type, 'exception.message': message })
  })

  it('contain the message where a stack begins with its first frame, as in Firefox', () => {
    const error = new Error('m')
    error.stack = 'buy@https://shop.example/app.js:1:7\n'
    expect(exceptionAttributes(error)['exception.stacktrace']).toBe('Error: m\nbuy@https://shop.example/app.js:1:7\n')
  })

  it('are cut in the middle', () => {
    const error = new Error('m')
    error.stack = `Error: m\n${'    at f (https://shop.example/app.js:1:7)\n'.repeat(2_000)}    at last`
    const text = String(exceptionAttributes(error)['exception.stacktrace'])
    expect(text.length).toBeLessThanOrEqual(16_384)
    expect(text.startsWith('Error: m\n')).toBe(true)
    expect(text.endsWith('at last')).toBe(true)
  })

  it.each(['https://shop.example', 'http://localhost:8080'])(
    'name the debug ids of the scripts in the stack: %s',
    origin => {
      const known = {
        [`Error\n    at ${origin}/app.js?v=1:1:20`]: 'id-app',
        [`Error\n    at load (${origin}/vendor.js:1:20)\n    at ${origin}/app.js?v=1:9:9`]: 'id-vendor',
        [`@${origin}/firefox.js:1:20\n`]: 'id-firefox',
      }
      Object.assign(globalThis, { _penstockDebugIds: known })
      const error = new Error('m')
      error.stack = `Error: m\n    at f (${origin}/app.js?v=1:9:9)\n    at ${origin}/firefox.js:2:2`
      const found = JSON.parse(String(exceptionAttributes(error)['exception.debug_ids']))
      expect(found).toEqual({ [`${origin}/app.js?v=1`]: 'id-app', [`${origin}/firefox.js`]: 'id-firefox' })
    },
  )
})
