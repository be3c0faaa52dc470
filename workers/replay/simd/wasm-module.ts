import { I32, unsigned, type Value, type ValueType } from './wasm-values.ts'

/** Opcodes (WebAssembly Core Specification 2.0, 5.4). The set of a variable follows its get. */
const LOCAL_GET = 0x20
const GLOBAL_GET = 0x23
const END = 0x0b
const NO_RESULT = 0x40

const MUTABLE = 1
const MEMORY_EXPORT = 2
const FUNCTION_EXPORT = 0
const GLOBAL_EXPORT = 3

/** The code of a function, statement by statement. */
export class FunctionCode {
  readonly #code: number[] = []
  readonly #locals: number[] = []

  /** Returns a new variable of the function. It is zero when the function begins. */
  variable<T extends Value>(type: ValueType<T>): T {
    this.#locals.push(type.type)
    // The argument is number 0.
    return new type([LOCAL_GET, ...unsigned(this.#locals.length)])
  }

  /** Returns a new variable with this value, which is computed here. A value that is no variable is computed where it is used. */
  let<T extends Value>(value: T): T {
    const variable = this.variable(value.constructor as ValueType<T>)
    this.set(variable, value)
    return variable
  }

  /** Sets a variable or a global. */
  set<T extends Value>(variable: T, value: T): void {
    const [get, ...index] = variable.code
    if (get !== LOCAL_GET && get !== GLOBAL_GET) throw new TypeError('only a variable can be set')
    this.#code.push(...value.code, get + 1, ...index)
  }

  /** Stores the lowest byte at this address. */
  setByte(address: I32, offset: number, value: I32): void {
    this.#code.push(...address.code, ...value.code, 0x3a, 0, ...unsigned(offset))
  }

  return(value: Value): void {
    this.#code.push(...value.code, 0x0f)
  }

  if(condition: I32, then: () => void, otherwise?: () => void): void {
    this.#code.push(...condition.code, 0x04, NO_RESULT)
    then()
    if (otherwise) {
      this.#code.push(0x05)
      otherwise()
    }
    this.#code.push(END)
  }

  while(condition: I32, body: () => void): void {
    this.#code.push(0x02, NO_RESULT, 0x03, NO_RESULT, ...condition.isZero().code, 0x0d, 1)
    body()
    this.#code.push(0x0c, 0, END, END)
  }

  /** Returns the function as it is in a module. Every path must have returned. */
  toBytes(): number[] {
    const locals = this.#locals.map(type => [1, type])
    return sized([...vector(locals), ...this.#code, 0x00, END])
  }
}

/**
 * Assembles a WebAssembly module. Every function has one argument of 32 bits. A mistake in the code is found when the module is
 * compiled, because WebAssembly is validated.
 */
export class ModuleAssembler {
  readonly #pages: number
  readonly #functions: { readonly type: number[]; readonly body: number[] }[] = []
  readonly #globals: number[][] = []
  readonly #exports: number[][] = [exported('memory', MEMORY_EXPORT, 0)]

  /** The memory of the module has this many pages of 64 KiB, and does not grow. */
  constructor(pages: number) {
    this.#pages = pages
  }

  /** Adds a global variable that is exported by this name. The initial value must be a constant. */
  global<T extends Value>(name: string, initial: T): T {
    const type = initial.constructor as ValueType<T>
    const index = this.#globals.push([type.type, MUTABLE, ...initial.code, END]) - 1
    this.#exports.push(exported(name, GLOBAL_EXPORT, index))
    return new type([GLOBAL_GET, ...unsigned(index)])
  }

  /** Adds a function that is exported by this name, and returns its call. */
  function<T extends Value>(
    name: string,
    resultType: ValueType<T>,
    write: (code: FunctionCode, argument: I32) => void,
  ): (argument: I32) => T {
    const code = new FunctionCode()
    write(code, new I32([LOCAL_GET, 0]))
    const type = [0x60, 1, I32.type, 1, resultType.type]
    const index = this.#functions.push({ type, body: code.toBytes() }) - 1
    this.#exports.push(exported(name, FUNCTION_EXPORT, index))
    return argument => new resultType([...argument.code, 0x10, ...unsigned(index)])
  }

  /** Returns the module (WebAssembly Core Specification 2.0, 5.5). */
  toBytes(): Uint8Array {
    const size = unsigned(this.#pages)
    return Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(
        1,
        this.#functions.map(({ type }) => type),
      ),
      ...section(
        3,
        this.#functions.map((_, index) => unsigned(index)),
      ),
      ...section(5, [[1, ...size, ...size]]),
      ...section(6, this.#globals),
      ...section(7, this.#exports),
      ...section(
        10,
        this.#functions.map(({ body }) => body),
      ),
    ])
  }
}

function section(id: number, entries: readonly number[][]): number[] {
  return [id, ...sized(vector(entries))]
}

function vector(entries: readonly number[][]): number[] {
  return [...unsigned(entries.length), ...entries.flat()]
}

function sized(bytes: readonly number[]): number[] {
  return [...unsigned(bytes.length), ...bytes]
}

function exported(name: string, kind: number, index: number): number[] {
  return [...sized([...Buffer.from(name)]), kind, ...unsigned(index)]
}

/** The part of the API that is used. Only the types of browsers contain it. */
const { Module, Instance } = (
  globalThis as unknown as {
    readonly WebAssembly: {
      readonly Module: new (bytes: Uint8Array) => object
      readonly Instance: new (module: object) => { readonly exports: object }
    }
  }
).WebAssembly

/**
 * Compiles a module and returns its exports. Throws a CompileError, which names the mistake, for an invalid module, or if the
 * processor lacks its instructions. Throws a RangeError if its memory cannot be taken.
 */
export function instantiate(module: Uint8Array): object {
  return new Instance(new Module(module)).exports
}
