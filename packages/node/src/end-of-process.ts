import type { EventEmitter } from 'node:events'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

interface Ending {
  /** Prepares what needs the event loop. Must have a deadline of its own. */
  prepare(): Promise<void>
  /** Sends what is left, at once. */
  send(): void
}

/** Sends what is left when the process ends, however it ends. */
export function watchEnd({ prepare, send }: Ending): void {
  let isPrepared = false
  process.on('beforeExit', () => {
    // The event is emitted again after the work of its listeners.
    if (isPrepared) return
    isPrepared = true
    void prepare()
  })
  process.on('exit', send)
}

/**
 * Sends what is left before a signal ends the process. It has a listener only while the application has none: an application that
 * listens decides itself, and programs that count the listeners find their own. The signal is then sent again, so that the process
 * ends by it as it would have.
 */
export function watchSignals({ prepare, send }: Ending): void {
  const events: EventEmitter = process
  for (const signal of SIGNALS) {
    let isEnding = false
    const onSignal = async () => {
      isEnding = true
      // A second signal ends the process at once.
      process.removeListener(signal, onSignal)
      try {
        await prepare()
      } finally {
        send()
        process.kill(process.pid, signal)
      }
    }
    // Node stops to watch a signal that has no listener, so this one must go before Node sees the new one.
    events.prependListener('newListener', (name: unknown, listener: unknown) => {
      if (name === signal && listener !== onSignal) process.removeListener(signal, onSignal)
    })
    events.on('removeListener', (name: unknown, listener: unknown) => {
      if (name !== signal || listener === onSignal || isEnding) return
      if (process.listenerCount(signal) === 0) process.on(signal, onSignal)
    })
    process.on(signal, onSignal)
  }
}
