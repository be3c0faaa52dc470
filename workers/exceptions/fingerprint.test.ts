import { describe, expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { type ExceptionIdentity, findingIdOf, normalizeMessage } from './fingerprint.ts'

const EXCEPTION: ExceptionIdentity = {
  workspaceId: 'ws_1',
  surfaceId: 'srf_1',
  serviceName: 'shop',
  type: 'TypeError',
  message: "Cannot read 'id' of order 17",
  stacktrace: `TypeError: Cannot read 'id' of order 17
    at load (https://shop.test/assets/orders-DkJ2x9aB.js:1:2345)
    at run (https://shop.test/assets/index.3f9a2c1b.js:7:8)
    at c (https://shop.test/c.js:1:1)
    at d (https://shop.test/d.js:1:1)
    at e (https://shop.test/e.js:1:1)
    at f (https://shop.test/f.js:1:1)`,
}
const ID = findingIdOf(EXCEPTION)
const idOf = (changes: Partial<ExceptionIdentity>) => findingIdOf({ ...EXCEPTION, ...changes })
const withoutStack = (changes: Partial<ExceptionIdentity>) => idOf({ stacktrace: '', ...changes })

describe('the id of a finding', () => {
  it('never changes, because stored findings are identified by it', () => {
    expect(ID).toMatch(/^fnd_[a-z2-7]{26}$/)
    expect(
      findingIdOf({ workspaceId: 'w', surfaceId: 's', serviceName: 'n', type: 't', message: 'm', stacktrace: '' }),
    ).toBe('fnd_nrrl5ltuxgv3fttxq43dtnrsdd')
  })

  it('stays the same over releases, lines and messages', () => {
    const nextRelease = EXCEPTION.stacktrace
      .replace('orders-DkJ2x9aB.js:1:2345', 'orders-Zy8wVu7t.js:3:11')
      .replace('index.3f9a2c1b.js:7:8', 'index.00aa11bb.js:9:9')
      .replace('shop.test/f', 'shop.test/g')
    expect(idOf({ stacktrace: nextRelease, message: 'other' })).toBe(ID)
  })

  it('differs by workspace, surface, service, type and each of the top five frames', () => {
    const ids = [
      ID,
      idOf({ workspaceId: 'ws_2' }),
      idOf({ surfaceId: 'srf_2' }),
      idOf({ serviceName: 'cart' }),
      idOf({ type: 'RangeError' }),
      ...['load', 'run', ' c ', ' d ', ' e '].map(name =>
        idOf({ stacktrace: EXCEPTION.stacktrace.replace(`at ${name.trim()} `, 'at changed ') }),
      ),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('derives from the message if there is no stack', () => {
    expect(withoutStack({ message: "Cannot read 'name' of order 18" })).toBe(withoutStack({}))
    expect(withoutStack({ message: 'no such order' })).not.toBe(withoutStack({}))
    expect(idOf({ stacktrace: ' \n ' })).toBe(withoutStack({}))
  })

  it('derives from the lines of a stack in an unknown format', () => {
    const ruby = (line: number) => `orders.rb:${line}:in 'load'\nserver.rb:${line}:in 'handle'`
    expect(idOf({ stacktrace: ruby(1) })).toBe(idOf({ stacktrace: ruby(2) }))
    expect(idOf({ stacktrace: ruby(1) })).not.toBe(idOf({ stacktrace: ruby(1).replace('orders', 'carts') }))
  })
})

describe('a message', () => {
  it.each([
    ['order 17 took 3.5 s', 'order # took #.# s'],
    ['user usr_8f3kd92 of 0f7c1b1e-8d4f-4f0e-9a57-6a1f7c7d2f11', 'user # of #'],
    ['"a" and \'b c\' and `d`', '# and # and #'],
    ["can't read property 'x' of it", "can't read property # of it"],
    ["it's, 'quoted", "it's, 'quoted"],
    ['0xdeadbeef 12:30:01Z', '# #:#:#'],
  ])('%s becomes %s', (message, normalized) => {
    expect(normalizeMessage(message)).toBe(normalized)
  })

  it.each(["'".repeat(100_000), '"a'.repeat(50_000), `${"x'".repeat(50_000)}`, 'a1-'.repeat(50_000)])(
    'is cut before expressions see it',
    message => {
      const normalize = () => expect(normalizeMessage(message).length).toBeLessThanOrEqual(1_024)
      expect(leastCpuMs(normalize, 50)).toBeLessThan(50)
    },
  )
})
