export interface FaultAt {
  /** The same object, whose calls of these names are counted, and fail once the fault has come. */
  wrap<T extends object>(target: T, names: readonly (keyof T & string)[]): T
  /** Aborted when the fault has come: nobody is to wait for what is gone. */
  readonly signal: AbortSignal
  readonly hasCome: boolean
}

/**
 * The death of a process at its nth call of a store, before the call or when it was carried out and its answer is on the
 * way: nothing that comes after is carried out.
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
