import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { chainOf, describeException } from './describe-exception.ts'

/** Returns an error with a short stack. */
function withStack<E extends Error>(error: E): E {
  error.stack = `${error.name}: ${error.message}\n    at pay (/app/pay.js:3:9)`
  return error
}

describe('chainOf', () => {
  it('is what util.inspect prints, for causes within causes', () => {
    const disk = withStack(new RangeError('disk is full'))
    const store = withStack(new Error('cannot store', { cause: disk }))
    const order = withStack(new TypeError('cannot order', { cause: store }))
    order.stack += '\n    at main (/app/main.js:1:1)'
    expect(chainOf(order)).toBe(
      [
        'TypeError: cannot order',
        '    at pay (/app/pay.js:3:9)',
        '    at main (/app/main.js:1:1) {',
        '  [cause]: Error: cannot store',
        '      at pay (/app/pay.js:3:9) {',
        '    [cause]: RangeError: disk is full',
        '        at pay (/app/pay.js:3:9)',
        '  }',
        '}',
      ].join('\n'),
    )
    expect(chainOf(order)).toBe(inspect(order, { depth: 9 }))
  })

  it('has the members of an AggregateError as util.inspect has them', () => {
    const errors = [withStack(new Error('one')), withStack(new RangeError('two'))]
    const group = withStack(new AggregateError(errors, 'all failed'))
    expect(chainOf(group)).toBe(inspect(group, { depth: 9 }))
  })

  it('leaves other properties out, which may be secret', () => {
    const error = Object.assign(withStack(new Error('denied')), { headers: { authorization: 'Bearer secret' } })
    expect(chainOf(withStack(new Error('failed', { cause: error })))).not.toContain('secret')
  })

  it('ends for errors that are their own causes, and after 16', () => {
    const loop = withStack(new Error('loop'))
    loop.cause = loop
    expect(chainOf(loop)).toBe(loop.stack)
    let chain = withStack(new Error('0'))
    for (let i = 1; i < 1_000; i++) chain = withStack(new Error(String(i), { cause: chain }))
    expect(chainOf(chain).match(/\bError: /g)).toHaveLength(16)
  })

  it('names the class of an error without a name of its own, and shows causes that are no errors', () => {
    class PaymentError extends Error {}
    const error = withStack(new PaymentError('declined', { cause: { code: 51 } }))
    expect(chainOf(error)).toContain('PaymentError: declined\n')
    expect(chainOf(error)).toContain('[cause]: { code: 51 }')
  })
})

describe('describeException', () => {
  it('describes errors of other realms, and whatever else is thrown', () => {
    expect(describeException(runInNewContext('new TypeError("far")'))).toMatchObject({
      'exception.type': 'TypeError',
      'exception.message': 'far',
    })
    expect(describeException('text')).toEqual({ 'exception.message': 'text' })
    expect(describeException(undefined)).toEqual({ 'exception.message': 'undefined' })
  })

  it('limits the stack', () => {
    const error = new Error('x'.repeat(100_000))
    expect(String(describeException(error)['exception.stacktrace']).length).toBeLessThanOrEqual(32_768)
  })
})
