import fc from 'fast-check'
import { expect, it } from 'vitest'
import { instantiate, ModuleAssembler } from './wasm-module.ts'
import { F64, I32, I64, type Value, type ValueType } from './wasm-values.ts'

/** Returns what a function without another statement returns. */
function evaluate<T extends Value>(type: ValueType<T>, value: T): unknown {
  const module = new ModuleAssembler(1)
  module.function('run', type, code => code.return(value))
  return (instantiate(module.toBytes()) as { run(argument: number): unknown }).run(0)
}

it('encodes constants of every size', () => {
  const borders = [0, 63, 64, 127, 128, 8191, 8192, 2 ** 31 - 1].flatMap(number => [number, -number, -number - 1])
  for (const number of borders) expect(evaluate(I32, I32.of(number))).toBe(number === 0 ? 0 : number)
  fc.assert(
    fc.property(fc.integer(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.double(), (a, b, c) => {
      expect(evaluate(I32, I32.of(a))).toBe(a)
      expect(evaluate(I64, I64.of(b))).toBe(b)
      expect(evaluate(F64, F64.of(c))).toBe(c)
    }),
  )
})

it('reads and writes more variables and addresses than one byte can number', () => {
  const module = new ModuleAssembler(1)
  module.function('run', I32, (code, argument) => {
    const variables = Array.from({ length: 300 }, (_, i) => code.let(argument.plus(i)))
    code.setByte(argument, 300, variables.at(-1) as I32)
    code.return(argument.byte(300))
  })
  const { run } = instantiate(module.toBytes()) as { run(argument: number): number }
  expect(run(5)).toBe((5 + 299) % 256)
})

it('refuses code that leaves a value of another type', () => {
  expect(() => evaluate(I32, I64.of(1n) as unknown as I32)).toThrow(/i32/)
})
