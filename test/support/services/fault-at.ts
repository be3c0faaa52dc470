/** Fault that ends every later call of the wrapped objects. */
export interface FaultAt {
  /** Returns the same object, whose calls of these names are counted and fail after the fault. */
  wrap<T extends object>(target: T, names: readonly (keyof T & string)[]): T
  /** Aborted at the fault, so that nothing waits for a dead process. */
  readonly signal: AbortSignal
  readonly hasCome: boolean
}

/**
 * Simulates the death of a process at its nth call of a store, before the call or after it when the response is on its
 * way. No later call is carried out.
 */
export function faultAt(n: number, moment: 'before' | 'after'): FaultAt {
  const dead = new AbortController()
  let calls = 0
  const die = () => {
    dead.abort()
    return new Error('the process is dead')
  }
  return {
    signal: dead.signal,
    get hasCome() {
      return dead.signal.aborted
    },
    wrap: (target, names) =>
      new Proxy(target, {
        get(of, name) {
          const value = Reflect.get(of, name, of)
          if (typeof value !== 'function') return value
          const call = value.bind(of)
          if (!names.some(counted => counted === name)) return call
          return async (...args: unknown[]) => {
            if (dead.signal.aborted) throw die()
            const isLast = ++calls === n
            if (isLast && moment === 'before') throw die()
            const answer = await call(...args)
            if (isLast || dead.signal.aborted) throw die()
            return answer
          }
        },
      }),
  }
}
