import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EXAMPLE, EXAMPLE_EXCEPTION } from '../../schemas/http/example-values.ts'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { type ExceptionIdentity, identify } from './fingerprint.ts'
import { groupStored } from './group-exception.ts'
import { NO_RULES } from './rules.ts'

const EXCEPTION: ExceptionIdentity = {
  workspaceId: 'ws_1',
  surfaceId: 'srf_1',
  serviceName: 'shop',
  type: 'TypeError',
  message: "Cannot read 'id' of order 17",
  stacktrace: `TypeError: Cannot read 'id' of order 17
    at load (https://shop.test/assets/orders-DkJ2x9aB.js:1:2345)
    at run (https://shop.test/assets/index.3f9a2c1b.js:7:8)
    at emit (node:events:514:28)
    at three (https://shop.test/c.js:1:1)
    at four (https://shop.test/d.js:1:1)`,
}
const idOf = (changes: Partial<ExceptionIdentity>) => identify({ ...EXCEPTION, ...changes }).id
const ID = idOf({})
const withStack = (...lines: string[]) => idOf({ stacktrace: `Error: x\n${lines.join('\n')}` })
const replaced = (from: string, to: string) => idOf({ stacktrace: EXCEPTION.stacktrace.replace(from, to) })

describe('the id of a finding', () => {
  it('never changes, because stored findings are identified by it', () => {
    expect(ID).toMatch(/^fnd_[a-z2-7]{26}$/)
    const fixed = { workspaceId: 'w', surfaceId: 's', serviceName: 'n', type: 't', message: 'm', stacktrace: '' }
    expect(identify(fixed)).toMatchObject({ id: 'fnd_xcpqex3xsd3xzntzrglugucufg', usesMessage: true })
  })

  it('gives the exception of the document its id', () => {
    const { workspaceId, surfaceId, serviceName, findingId } = EXAMPLE
    const place = { line: 1, column: 1 }
    // As its source map has it, which names no function.
    const frame = {
      ...place,
      function: 'checkout',
      file: 'cart.ts',
      resolved: true,
      generated: { ...place, file: 'app.js' },
    }
    const stored = { workspaceId, surfaceId, serviceName, ...EXAMPLE_EXCEPTION, frames: JSON.stringify([frame]) }
    expect(groupStored(stored, NO_RULES).findingId).toBe(findingId)
  })

  it.each([
    ['the message', idOf({ message: 'other' })],
    ['builds', replaced('orders-DkJ2x9aB.js:1:2345', 'orders-Zy8wVu7t.js:3:11')],
    ['frames of the runtime', replaced('    at emit (node:events:514:28)\n', '')],
    [
      'frames of dependencies',
      replaced('    at emit', '    at next (/srv/app/node_modules/express/lib/router.js:1:2)\n    at emit'),
    ],
    ['frames after the third', replaced('at four', 'at five')],
    [
      'recursion',
      replaced('    at run', '    at load (https://shop.test/assets/orders-DkJ2x9aB.js:1:2300)\n    at run'),
    ],
    ['awaited calls', replaced('at run', 'at async run')],
  ])('does not depend on %s', (_, id) => expect(id).toBe(ID))

  it('differs by workspace, surface, service, type and each of the top three frames', () => {
    const ids = [
      ID,
      idOf({ workspaceId: 'ws_2' }),
      idOf({ surfaceId: 'srf_2' }),
      idOf({ serviceName: 'cart' }),
      idOf({ type: 'RangeError' }),
      ...['load', 'run', 'three'].map(name => replaced(`at ${name} `, 'at changed ')),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('is of the fingerprint that the client sent', () => {
    const own = idOf({ fingerprint: 'checkout' })
    expect(own).not.toBe(ID)
    expect(idOf({ fingerprint: 'checkout', type: 'RangeError', stacktrace: '', message: 'x' })).toBe(own)
    expect(idOf({ fingerprint: 'cart' })).not.toBe(own)
    expect(idOf({ fingerprint: 'checkout', workspaceId: 'ws_2' })).not.toBe(own)
  })

  it('has positions of unnamed functions in minified files only', () => {
    const at = (call: string, place: string) => withStack(`    at ${call ? `${call} (${place})` : place}`)
    const bundle = 'https://shop.test/assets/index-DkJ2x9aB.js'
    expect(at('', `${bundle}:1:100`)).not.toBe(at('', `${bundle}:1:200`))
    expect(at('t', `${bundle}:1:100`)).not.toBe(at('t', `${bundle}:1:55100`))
    expect(at('t', 'https://shop.test/app.js:1:9100')).not.toBe(at('t', 'https://shop.test/app.js:1:9200'))
    expect(at('total', `${bundle}:1:100`)).toBe(at('total', `${bundle}:1:200`))
    expect(at('', 'https://shop.test/app.js:10:5')).toBe(at('', 'https://shop.test/app.js:11:5'))
  })

  it('covers the causes, and not what was suppressed', () => {
    const python = (cause: string, name: string) =>
      idOf({
        stacktrace: `Traceback (most recent call last):
  File "/srv/app/${name}.py", line 3, in ${name}
${cause}: x

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/main.py", line 9, in run
RuntimeError: x`,
      })
    expect(new Set([python('KeyError', 'a'), python('ValueError', 'a'), python('KeyError', 'b')]).size).toBe(3)
  })

  it('has the message beside frames of the runtime alone', () => {
    const refused = (message: string) =>
      idOf({
        message,
        stacktrace: `Error: ${message}\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16)`,
      })
    expect(refused('connect ECONNREFUSED 10.0.0.1:5432')).toBe(refused('connect ECONNREFUSED 10.0.0.2:5432'))
    expect(refused('connect ECONNREFUSED 10.0.0.1:5432')).not.toBe(refused('connect ETIMEDOUT 10.0.0.1:5432'))
  })

  it('takes no line of the message for a frame', () => {
    const withMessage = (message: string) =>
      idOf({ message, stacktrace: `Error: ${message}\n    at load (/srv/app/a.js:1:2)` })
    expect(withMessage('no card\n    at refund (/srv/app/pay.js:3:9)')).toBe(withMessage('no card'))
  })
})

describe('without a known stack', () => {
  const withoutStack = (message: string) => idOf({ stacktrace: ' \n ', message })

  it('derives from the message', () => {
    expect(withoutStack("Cannot read 'name' of order 18")).toBe(withoutStack("Cannot read 'id' of order 17"))
    expect(withoutStack('no such order')).not.toBe(withoutStack('no such cart'))
  })

  it('derives from a name with its ids replaced', () => {
    const failed = (type: string) => idOf({ type, message: '', stacktrace: '' })
    expect(failed('GET /users/123')).toBe(failed('GET /users/456'))
    expect(failed('publish order-1234')).toBe(failed('publish order-99'))
    expect(failed('GET /users/123')).not.toBe(failed('GET /carts/123'))
    expect(failed('Http2Error')).not.toBe(failed('Http3Error'))
  })

  it('derives from the places of a stack in an unknown format', () => {
    const lua = (line: number, name: string) => idOf({ stacktrace: `boom ${line}\n  in ${name} orders.lua:${line}` })
    expect(lua(1, 'load')).toBe(lua(2, 'load'))
    expect(lua(1, 'load')).not.toBe(lua(1, 'save'))
  })
})

describe('the variant', () => {
  const variantOf = (changes: Partial<ExceptionIdentity>) =>
    identify({ ...EXCEPTION, ...changes }).variantId.toString('hex')
  const python = (line: number, message: string) =>
    variantOf({
      stacktrace: `Traceback (most recent call last):
  File "/srv/app/cart.py", line ${line}, in pay
ValueError: ${message}`,
    })
  const go = (offset: string, routine: number) =>
    variantOf({
      stacktrace: `goroutine ${routine} [running]:
main.pay({0xc00012${offset}, 0x2})
\t/srv/cart/main.go:17 +0x${offset}`,
    })

  it('is the same whatever message, arguments and addresses a stack has', () => {
    expect(python(3, 'order 17')).toBe(python(3, 'order 18 of anna'))
    expect(go('1d', 7)).toBe(go('2e', 8))
  })

  it('differs by the places of the stack and by the version, which source maps and rules look at', () => {
    expect(python(3, 'order 17')).not.toBe(python(4, 'order 17'))
    expect(variantOf({ serviceVersion: '2' })).not.toBe(variantOf({}))
    expect(variantOf({ stacktrace: EXCEPTION.stacktrace.replace('d.js:1:1', 'd.js:1:2') })).not.toBe(variantOf({}))
  })

  it('begins as those of the finding that the exception was sent as', () => {
    expect(python(3, 'x').slice(0, 16)).toBe(python(4, 'x').slice(0, 16))
    expect(variantOf({ type: 'RangeError' }).slice(0, 16)).not.toBe(variantOf({}).slice(0, 16))
  })
})

it('names any exception in linear time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), fc.string(), (stacktrace, message, type) => {
      expect(idOf({ stacktrace, message, type })).toMatch(/^fnd_/)
    }),
  )
  const texts = [
    '    at ',
    '@a:1:2\n',
    '{',
    '[1',
    '"',
    "'",
    '\\',
    'a1-',
    '://',
    '/',
    '(',
    '<',
    '    at f (a1b2c3d4-.js:1:1)\n',
    '$$Lambda',
    '«',
  ]
  for (const text of texts) {
    const long = text.repeat(32_000 / text.length)
    expect(
      leastCpuMs(() => idOf({ stacktrace: long, message: long }), 100),
      text,
    ).toBeLessThan(100)
    expect(
      leastCpuMs(() => idOf({ stacktrace: `    at ${long} (a.js:1:2)`, type: long }), 100),
      text,
    ).toBeLessThan(100)
  }
})
