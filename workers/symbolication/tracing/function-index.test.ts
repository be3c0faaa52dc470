import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { indexFunctions } from './function-index.ts'

/** Returns the name of the function around each `MARK` of a source. */
function names(source: string, path = 'a.ts'): (string | undefined)[] {
  const index = indexFunctions(source, path)
  return [...source.matchAll(/MARK/g)].map(({ index: at }) => index?.nameAt(at))
}

describe('the function around a position', () => {
  it('is named as it is declared, or as what it is assigned to', () => {
    expect(
      names(`MARK
        function outer() { function inner() { MARK } MARK }
        async function load() { MARK }
        const arrow = async (x: string) => { MARK }
        let given; given = function () { MARK }
        exports.send = () => MARK
        exports.named = function own() { MARK }
        Cart.prototype.sum = function () { MARK }
        const api = { get() { MARK }, go: function () { MARK }, 'a-b': () => MARK, [x]: () => MARK }
        function option({ onError = () => MARK } = {}) {}
        const cast = (() => MARK) as Handler
        list.map(() => MARK)`),
    ).toEqual([
      ...['', 'inner', 'outer', 'load', 'arrow', 'given', 'send', 'own', 'Cart.sum'],
      ...['get', 'go', 'a-b', '<anonymous>', 'onError', 'cast', '<anonymous>'],
    ])
    expect(names('export default function () { MARK }')).toEqual(['default'])
    expect(names('export default () => MARK')).toEqual(['default'])
  })

  it('is the caller at the closing brace of a function that is called where it is written', () => {
    const source = 'function mail() { (() => { send() })(); return (() => x)() }'
    const index = indexFunctions(source, 'a.js')
    expect(index?.nameAt(source.indexOf('send'))).toBe('<anonymous>')
    expect(index?.nameAt(source.indexOf('})'))).toBe('mail')
    expect(index?.nameAt(source.indexOf('x)'))).toBe('<anonymous>')
  })

  it('is named with its class', () => {
    expect(
      names(`class Cart<T> extends Base {
        #secret = () => MARK
        total = (): number => { MARK }
        static count = function () { MARK }
        constructor(private a: number) { super(); MARK }
        async pay(): Promise<void> { const deep = () => MARK; MARK }
        static get size() { MARK }
        #hidden() { MARK }
        [key]() { MARK }
      }
      const Named = class { m() { MARK } }
      export default class { m() { MARK } }`),
    ).toEqual([
      ...['Cart.#secret', 'Cart.total', 'Cart.count', 'new Cart', 'deep', 'Cart.pay', 'Cart.size', 'Cart.#hidden'],
      ...['Cart.<anonymous>', 'Named.m', 'default.m'],
    ])
  })

  it('is found in TypeScript, JSX, Flow and partly broken sources', () => {
    expect(names('function f<T>(x) { return <T>x; MARK }', 'a.ts')).toEqual(['f'])
    expect(names('const View = <T,>(p: P) => <b onClick={() => MARK}>{MARK}</b>', 'a.tsx')).toEqual([
      '<anonymous>',
      'View',
    ])
    expect(names('const View = props => <b>{MARK}</b>', 'a.jsx')).toEqual(['View'])
    expect(names('@sealed class A { @log m() { MARK } }', 'a.ts')).toEqual(['A.m'])
    expect(names('function f(x: ?string): %checks { MARK }', 'a.js')).toEqual(['f'])
    expect(names('function f() { return await x; MARK } let f, f', 'a.js')).toEqual(['f'])
  })

  it('is unknown in any source that cannot be parsed', () => {
    expect(indexFunctions('<template><b/></template>', 'a.vue')).toBeUndefined()
    for (const source of ['('.repeat(100_000), '`${'.repeat(50_000), '[[{'.repeat(50_000)]) {
      const index = () => expect(indexFunctions(source, 'a.js')).toBeUndefined()
      expect(leastCpuMs(index, 5_000)).toBeLessThan(5_000)
    }
    expect(indexFunctions(' '.repeat(MIB + 1), 'a.ts')).toBeUndefined()
  })
})
